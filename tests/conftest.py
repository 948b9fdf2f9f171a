"""What holds for all tests: the table of what was killed, and what came of it."""

import os
from typing import Any

import pytest
from tests.chaos import tally


def pytest_addoption(parser: pytest.Parser) -> None:
    """Know `--regen`: goldens are rewritten instead of compared, and then read in review like code."""
    parser.addoption("--regen", action="store_true", help="rewrite goldens instead of comparing with them")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what takes long to `make chaos`; each has a shorter relative that always runs."""
    if "KT_CHAOS" in os.environ:
        return
    for item in items:
        if item.get_closest_marker("long") is not None:
            item.add_marker(pytest.mark.skip(reason="takes long: make chaos"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the rows of all recipes as one table, also where workers ran them."""
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    found = tally.rows(reports)
    if not found:
        return
    terminalreporter.section("killed, and what came of it")
    for line in tally.table(found):
        terminalreporter.write_line(line)
    tally.keep(found)

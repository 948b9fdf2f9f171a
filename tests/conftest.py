"""What holds for all tests: the table of what was killed, and what came of it."""

from typing import Any

from tests.chaos import tally


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

from typing import Any

import pytest

from kt_cli import machine_figures

USED = {
    "processes": 3,
    "cpu_percent": 12.34,
    "cpu_window_s": 2.5,
    "memory_bytes": 34 << 20,
    "pss_bytes": None,
    "descriptors": 21,
    "unknown": {},
}


def test_a_list_has_four_figures_in_one_cell() -> None:
    assert "12.3% 34MiB 3p 21fd" == machine_figures.brief(USED)


@pytest.mark.parametrize("used", [None, {}, USED | {"processes": None}])
def test_nothing_known_is_a_dash(used: Any) -> None:
    assert "—" == machine_figures.brief(used)


def test_one_figure_that_is_not_known_is_a_dash_and_show_says_why() -> None:
    used = USED | {"descriptors": None, "unknown": {"descriptors": "not allowed"}}

    assert "12.3% 34MiB 3p —fd" == machine_figures.brief(used)
    assert ("Open descriptors", "— (not allowed)") in machine_figures.rows(used)


def test_show_says_over_how_long_and_which_memory() -> None:
    rows = dict(machine_figures.rows(USED | {"pss_bytes": 5 << 20}))

    assert "12.3% of one core, over 2.5 s" == rows["CPU"]
    assert "34MiB resident, 5.0MiB proportional" == rows["Memory"]
    assert [] == machine_figures.rows(None)


def test_a_limit_is_told_with_what_holds_it() -> None:
    shown = {
        "memory": {"value": "1G", "enforced": "rlimit"},
        "cpu": {"value": "2", "enforced": None},
        "pids": {"value": None, "enforced": "cgroup"},
    }

    assert [
        ("Limit: memory", "1G (rlimit)"),
        ("Limit: cpu", "2 (at the next start)"),
        ("Limit: pids", "no longer set (cgroup)"),
    ] == machine_figures.limits(shown)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "—"),
        (0, "0B"),
        (999, "999B"),
        (1 << 20, "1.0MiB"),
        (1000 << 20, "1.0GiB"),
        (5 << 50, "5120TiB"),
    ],
)
def test_a_size_is_short(count: int | None, text: str) -> None:
    assert text == machine_figures.size(count)

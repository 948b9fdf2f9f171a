import sys
from pathlib import Path
from typing import Any

import pytest

from kt_supervisor.engine.run import limits
from kt_supervisor.engine.run.limits import Limits
from kt_supervisor.keeper import specification

SLEEPS = "import time\ntime.sleep(600)"


def test_settings_become_numbers() -> None:
    values = {"limits.memory": "512M", "limits.cpu": "0.5", "limits.pids": "64", "limits.nofile": "1024"}

    assert Limits(memory_bytes=512 << 20, cpu_cores=0.5, pids=64, nofile=1024) == limits.effective(values)
    assert Limits() == limits.effective({})


def test_a_keeper_is_told_what_it_understands_and_nothing_that_is_not_set() -> None:
    told = Limits(memory_bytes=1, nofile=2).for_keeper("/sys/fs/cgroup/x")

    assert set(told) <= set(specification.build.__kwdefaults__ or {})
    assert told.get("limits", {"memory_bytes": 1, "nofile": 2}) == {"memory_bytes": 1, "nofile": 2}
    assert {} == Limits().for_keeper(None)


@pytest.mark.parametrize(
    ("settings", "record", "shown"),
    [
        ({}, None, {}),
        ({"limits.pids": "5"}, None, {"pids": {"value": "5", "enforced": None}}),
        ({"limits.pids": "5"}, {}, {"pids": {"value": "5", "enforced": limits.UNKNOWN}}),
        (
            {"limits.memory": "1G", "limits.nofile": "9"},
            {"limits": {"memory": "not enforced: why", "nofile": "rlimit"}},
            {
                "memory": {"value": "1G", "enforced": "not enforced: why"},
                "nofile": {"value": "9", "enforced": "rlimit"},
            },
        ),
        ({}, {"limits": {"cpu": "cgroup"}}, {"cpu": {"value": None, "enforced": "cgroup"}}),
        ({}, {"limits": "damaged"}, {}),
    ],
)
def test_what_holds_a_limit_is_the_keepers_word(settings: Any, record: Any, shown: Any) -> None:
    assert shown == limits.shown(settings, record)


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (None, []),
        ({"limits": "damaged"}, []),
        ({"limits": {"cpu": "cgroup", "nofile": "rlimit"}}, []),
        (
            {"limits": {"cpu": "cgroup", "nofile": "not enforced: no"}},
            ["limits.nofile is not enforced: no"],
        ),
    ],
)
def test_a_start_says_which_limits_hold_nothing_back(record: Any, told: list[str]) -> None:
    assert told == limits.unenforced(record)


@pytest.mark.skipif(sys.platform != "linux", reason="reads fs.nr_open")
def test_more_descriptors_than_the_kernel_gives_are_told_at_the_start(house: Any) -> None:
    house.register("bot", SLEEPS)
    most = int(Path("/proc/sys/fs/nr_open").read_text())
    wanted = min(most + 1, 2**30)
    house.set("bot", "limits.nofile", str(wanted))

    told = house.start("bot")["notices"]

    assert (wanted > most) == any("limits.nofile is not enforced" in notice for notice in told)
    assert "running" == house.entry("bot")["state"]


def test_show_tells_limits_and_who_enforces_them(house: Any) -> None:
    house.register("bot", SLEEPS)
    house.set("bot", "limits.nofile", "512")
    before = house.entry("bot")["limits"]

    house.start("bot")

    assert {"nofile": {"value": "512", "enforced": None}} == before
    assert house.entry("bot")["limits"]["nofile"]["enforced"] in ("rlimit", limits.UNKNOWN)


def test_a_limit_that_is_none_is_refused(house: Any) -> None:
    house.register("bot", SLEEPS)

    codes = [
        house.refusal("PUT", "/v1/agents/bot/config", {"key": key, "value": value, "env": {}}).exit_code
        for key, value in (("limits.memory", "0"), ("limits.cpu", "-1"), ("limits.pids", "many"))
    ]

    assert [2, 2, 2] == codes

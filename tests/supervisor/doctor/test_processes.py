from typing import Any

import pytest

from kt_ledger.version import VERSION
from kt_supervisor.doctor import processes
from kt_supervisor.doctor.finding import Level
from kt_supervisor.doctor.processes import LiveKeeper

KEEPERS = [LiveKeeper("r1", 10, "bot"), LiveKeeper("r2", 11, "other")]


def test_a_keeper_of_no_run_under_way_is_an_orphan() -> None:
    assert Level.OK is processes.judge_keepers(KEEPERS, ["r1", "r2", "r3"]).level
    assert Level.OK is processes.judge_keepers(KEEPERS, None).level
    orphan = processes.judge_keepers(KEEPERS, ["r1"])
    assert Level.BAD is orphan.level
    assert "process 11 (agent other, run r2)" in orphan.found


def test_the_keepers_that_live_are_found_and_only_they(house: Any) -> None:
    house.register("bot", "import time\ntime.sleep(600)")
    started = house.start("bot")
    living = processes.keepers(house.files)
    house.stop("bot")

    assert [(started["run_id"], "bot")] == [(one.run_id, one.agent) for one in living]
    house.until(lambda: not processes.keepers(house.files), "its keeper has ended")


@pytest.mark.parametrize(
    ("engine", "gateway", "level"),
    [
        (VERSION, VERSION, Level.OK),
        (VERSION, None, Level.OK),
        ("0.0.1", VERSION, Level.WARN),
        (VERSION, "0.0.1", Level.WARN),
    ],
)
def test_versions_that_differ_are_told(engine: str, gateway: str | None, level: Level) -> None:
    assert level is processes.judge_versions(engine, gateway).level


@pytest.mark.parametrize(
    ("facts", "level"),
    [
        (None, Level.OK),
        ({"store": "ok", "pid": 1}, Level.OK),
        ({"store": "ledger: disk is full", "pid": 1}, Level.BAD),
        ({"store": "ok", "gateway": {"journal_healthy": False}}, Level.BAD),
    ],
)
def test_an_engine_without_its_ledger_is_bad(facts: Any, level: Level) -> None:
    assert level is processes.judge_engine(facts).level

"""An agent's keeper and the engine, which holds what another keeper would need, die in the same moment."""

import json
import os
import random
import signal

import pytest
from tests.chaos import agents, evidence
from tests.chaos.tally import Tally
from tests.house import House, until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300), pytest.mark.long]

TIMES = 6


def test_what_may_be_missing_is_said(house: House, tally: Tally, chance: random.Random) -> None:
    house.register("other", "import time\ntime.sleep(600)")
    house.start("other")  # its keeper brings the engine back
    tally.agents = TIMES + 1
    for number in range(TIMES):
        name = f"printer-{number}"
        house.register(name, agents.PRINTER, str(chance.randrange(2**32)), "40", "0.02", "3")
        house.set(name, "restart.policy", "never")
        run_id = house.start(name)["run_id"]
        record = house.run_record(run_id)
        log = house.files.run(run_id).segment("out", 1)
        until(lambda log=log: log.stat().st_size > 100_000, f"{name} has printed")

        for pid in chance.sample([record["keeper_pid"], house.engine_pid()], 2):
            os.kill(pid, signal.SIGKILL)
        tally.engine += 1
        tally.keeper += 1
        house.wait_for_engine()
        until(
            lambda name=name, run_id=run_id: (
                house.entry(name)["state"] == "failed" or house.run_record(run_id)["takeovers"] == 1
            ),
            f"{name} has another keeper, or has ended",
        )
        (house.files.home(name) / "end").touch()
        entry = house.wait_for_state(name, "failed")

        assert run_id == entry["run_id"]
        judge(house, name, entry, tally)
    tally.survivors += house.stop_everything()
    for number in range(TIMES):
        evidence.count_spawns(house, f"printer-{number}", tally)


def judge(house: House, name: str, entry: dict[str, object], tally: Tally) -> None:
    """Whether the end is the right one, or is said to be unknown; and gaps are named where the pipes were broken."""
    run = house.files.run(str(entry["run_id"]))
    cause = entry["failed_cause"]
    assert isinstance(cause, dict)
    said = json.loads(run.exit.read_bytes()) if run.exit.exists() else {}
    finished = (house.files.home(name) / "total.json").exists()
    right = entry["exit"] == {"code": 3 if finished else 1, "signal": None}  # 1: a write met no reader
    unknown = entry["exit"] == {"code": None, "signal": None} and (
        "not known" in cause["detail"] or cause["detail"].startswith("lost: ")
    )
    tally.unknown_exits += unknown
    tally.wrong_exits += not (right or unknown)
    print(name, entry["exit"], cause, said.get("gaps"), "finished" if finished else "not finished")
    if finished and entry["exit"] != {"code": 3, "signal": None}:
        assert unknown
    if finished:
        lines = evidence.total(house, name)["lines"]
        counted = entry["usage"]["cumulative_output_tokens"]  # type: ignore[index]
        assert counted <= lines
        assert counted == lines or said.get("gaps"), (
            f"{lines - counted} of {lines} reports are missing in silence"
        )

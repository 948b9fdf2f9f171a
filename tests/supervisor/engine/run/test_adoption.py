import json
import os
from pathlib import Path
from typing import Any

import pytest

from kt_ledger import process_identity
from kt_ledger.layout import RunLayout
from kt_ledger.records import RunRow
from kt_supervisor.engine.run import adoption
from kt_supervisor.engine.run.adoption import Evidence, Verdict
from kt_supervisor.engine.run.ending import Exit
from kt_supervisor.keeper import proctree

EXIT = Exit(code=0)
RECORD = {"keeper_pid": 11, "agent_pid": 12}
RUN = RunRow(id="r", instance_id="i", token="t", started_at_ns=0)


def evidence(**facts: Any) -> Evidence:
    """Return what is known where the keeper is dead and nothing is left, but for `facts`."""
    nothing = {"exit": None, "record": RECORD, "same_boot": True, "lock_held": False, "keeper_alive": False}
    return Evidence(**nothing | facts)


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        ({"exit": EXIT, "keeper_alive": True, "lock_held": True}, Verdict.FINISH),
        # What was recorded holds across boots.
        ({"exit": EXIT, "same_boot": False, "keeper_alive": False}, Verdict.FINISH),
        # The numbers are other people's now.
        ({"same_boot": False, "keeper_alive": True, "agent_alive": True, "lock_held": True}, Verdict.LOST),
        ({"keeper_alive": True, "agent_alive": True, "lock_held": True}, Verdict.ADOPT),
        # A keeper that is only beginning.
        ({"record": None, "keeper_alive": None, "lock_held": True}, Verdict.ADOPT),
        ({"agent_alive": True, "agent_proven": True, "lock_held": True}, Verdict.REPLACE),
        # It closed the descriptor of its Run's lock, and carries its Run's id.
        ({"agent_alive": True, "agent_proven": True}, Verdict.REPLACE),
        ({"agent_alive": True}, Verdict.UNVERIFIABLE),
        ({"agent_alive": False, "lock_held": True}, Verdict.END),
        ({"agent_alive": False}, Verdict.LOST),
        ({"record": None, "keeper_alive": None}, Verdict.LOST),
    ],
)
def test_the_evidence_decides(facts: dict[str, Any], wanted: Verdict) -> None:
    assert wanted is adoption.judge(evidence(**facts))


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        ({"keeper_alive": True, "lock_held": True}, Verdict.UNVERIFIABLE),
        ({"record": None, "keeper_alive": None, "lock_held": True}, Verdict.UNVERIFIABLE),
        ({"exit": EXIT, "keeper_alive": True, "lock_held": True}, Verdict.FINISH),
        ({"lock_held": True}, Verdict.END),
        ({}, Verdict.LOST),
    ],
)
def test_a_keeper_that_lives_and_does_not_answer_is_never_ended(
    facts: dict[str, Any], wanted: Verdict
) -> None:
    assert wanted is adoption.judge_silence(evidence(**facts))


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"keeper_alive": True}, "its keeper (process 11) does not answer; `kill -CONT 11`"),
        ({"agent_alive": True}, "process 12 may be the agent"),
        ({"record": None, "keeper_alive": None, "lock_held": True}, "something holds the lock"),
    ],
)
def test_what_cannot_be_verified_says_what_to_do(facts: dict[str, Any], said: str) -> None:
    told = adoption.trouble(Verdict.UNVERIFIABLE, evidence(**facts))

    assert told is not None
    assert said in told


def test_what_can_be_verified_is_no_trouble() -> None:
    assert adoption.trouble(Verdict.ADOPT, evidence()) is None


def test_an_empty_folder_is_no_evidence_of_life(tmp_path: Path) -> None:
    found = adoption.gather(RunLayout(tmp_path), RUN)

    assert Evidence(exit=None, record=None, same_boot=True, lock_held=False, keeper_alive=None) == found


def test_a_half_written_record_is_none(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"keeper_pid": 12')
    (tmp_path / "exit.json").write_text("[]")

    found = adoption.gather(RunLayout(tmp_path), RUN)

    assert (None, None) == (found.record, found.exit)


def test_a_reused_pid_is_not_the_keeper(tmp_path: Path) -> None:
    ticks = proctree.start_ticks(os.getpid())
    record = {
        "keeper_pid": os.getpid(),
        "keeper_start_ticks": ticks + 1,
        "boot_id": process_identity.boot_id(),
    }
    (tmp_path / "run.json").write_text(json.dumps(record))

    found = adoption.gather(RunLayout(tmp_path), RUN)

    assert found.keeper_alive is False

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kt_ledger.layout import RunLayout
from kt_ledger.records import RunRow
from kt_supervisor.engine import adoption
from kt_supervisor.engine.adoption import Evidence, Verdict
from kt_supervisor.keeper import proctree, system

EXIT = {"code": 0}
RECORD = {"keeper_pid": 1}
RUN = RunRow(id="r", instance_id="i", token="t", started_at_ns=0)


@pytest.mark.parametrize(
    ("exit_record", "record", "same_boot", "lock_held", "keeper_alive", "wanted"),
    [
        (EXIT, RECORD, True, True, True, Verdict.FINISH),
        (EXIT, RECORD, False, False, False, Verdict.FINISH),  # what was recorded holds across boots
        (None, RECORD, False, True, True, Verdict.LOST),  # the numbers are other people's now
        (None, RECORD, True, True, True, Verdict.ADOPT),
        (None, None, True, True, None, Verdict.ADOPT),  # a keeper that is only beginning
        (None, RECORD, True, True, False, Verdict.END),
        (None, RECORD, True, False, False, Verdict.LOST),
        (None, None, True, False, None, Verdict.LOST),
    ],
)
def test_the_evidence_decides(
    exit_record: Any, record: Any, same_boot: bool, lock_held: bool, keeper_alive: Any, wanted: Verdict
) -> None:
    evidence = Evidence(
        exit=exit_record, record=record, same_boot=same_boot, lock_held=lock_held, keeper_alive=keeper_alive
    )

    assert wanted is adoption.judge(evidence)


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
    record = {"keeper_pid": os.getpid(), "keeper_start_ticks": ticks + 1, "boot_id": system.boot_id()}
    (tmp_path / "run.json").write_text(json.dumps(record))

    found = adoption.gather(RunLayout(tmp_path), RUN)

    assert found.keeper_alive is False


def test_a_tree_is_ended_by_the_runs_name_and_strangers_are_left_alone() -> None:
    child = "import subprocess as s, time\ns.Popen(['setsid', 'sleep', '600'])\nprint(1, flush=True)\ntime.sleep(600)"
    ours = subprocess.Popen(
        [sys.executable, "-c", child], env=os.environ | {"KT_RUN": "run-of-this-test"}, stdout=subprocess.PIPE
    )
    stranger = subprocess.Popen(["sleep", "600"])
    assert ours.stdout is not None
    ours.stdout.readline()
    record = {"agent_pid": stranger.pid, "agent_start_ticks": proctree.start_ticks(stranger.pid) + 1}

    clean = adoption.end_tree("run-of-this-test", record)

    left = adoption.carrying("KT_RUN=run-of-this-test")
    alive = stranger.poll() is None
    stranger.kill()
    stranger.wait()
    ours.wait(10)
    assert (True, [], True) == (clean, left, alive)

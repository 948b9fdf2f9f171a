import os
import subprocess
import sys
from pathlib import Path

from kt_ledger.layout import StateLayout
from kt_supervisor.engine import callers
from kt_supervisor.engine.callers import Lineage


def test_a_process_is_told_with_its_ancestors_and_what_they_carry() -> None:
    code = "import subprocess, sys; subprocess.run(['sleep', '600'], env={})"
    child = subprocess.Popen([sys.executable, "-c", code], env={"KT_RUN": "the-run"})
    try:
        grandchild = 0
        while not grandchild:
            found = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
            grandchild = int(found[0]) if found else 0

        seen = callers.lineage(grandchild)
    finally:
        os.kill(grandchild, 9)
        child.wait()

    assert [grandchild, child.pid, os.getpid()] == [pid for pid, _ in seen.pids[:3]]
    assert "the-run" in seen.runs


def test_one_that_carries_a_run_of_this_place_belongs_to_it(tmp_path: Path) -> None:
    files = StateLayout(tmp_path)
    files.run("r1").root.mkdir(parents=True)

    def of(*runs: str) -> object:
        found = callers.run_of(Lineage(((1, 1),), runs, ""), files, [])
        return found and found.root.name

    assert "r1" == of("r1")
    assert "r1" == of("other-place", "r1")
    assert [None, None, None, None] == [of(), of("other-place"), of("../runs/r1"), of("..")]


def test_one_below_a_keeper_or_in_the_runs_cgroup_belongs_to_it(tmp_path: Path) -> None:
    files = StateLayout(tmp_path)
    run = files.run("r1")
    run.root.mkdir(parents=True)
    run.record.write_text('{"keeper_pid": 50, "keeper_start_ticks": 7, "cgroup": "/sys/fs/cgroup/kt/r1"}')

    def belongs(process: Lineage) -> bool:
        return callers.run_of(process, files, [run]) is not None

    assert belongs(Lineage(((99, 9), (50, 7)), (), ""))
    assert not belongs(Lineage(((99, 9), (50, 8)), (), ""))  # a later process of that number
    assert belongs(Lineage(((99, 9),), (), "/kt/r1"))
    assert belongs(Lineage(((99, 9),), (), "/kt/r1/below"))
    assert not belongs(Lineage(((99, 9),), (), "/kt/r10"))
    assert not belongs(Lineage(((99, 9),), (), ""))


def test_an_owner_that_nobody_wrote_down_is_nobody(tmp_path: Path) -> None:
    run = StateLayout(tmp_path).run("r1")

    assert ("", "") == callers.owner_of(run)

"""Whose a folder is, and what is done with one whose kit was killed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kt_conformance import estate
from kt_ledger import process_identity


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary directory of the test: nobody else's folders are in it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def folder(here: Path, name: str = "kt-tck-left", **note: object) -> Path:
    """A folder as a kit leaves it that is killed before it has an engine."""
    root = here / name
    root.mkdir()
    (root / "kit.json").write_text(json.dumps(note))
    return root


def identity(pid: int, **more: object) -> dict[str, object]:
    return {
        "pid": pid,
        "start_ticks": process_identity.start_ticks(pid),
        "boot_id": process_identity.boot_id(),
    } | more


def test_a_folder_whose_kit_lives_is_left_alone() -> None:
    root, lock = estate.found()

    locked = estate.sweep()
    os.close(lock)
    named = estate.sweep()

    assert ([], []) == (locked, named)
    assert identity(os.getpid()) == json.loads((root / "kit.json").read_text())


@pytest.mark.parametrize(
    "more", [{"start_ticks": 1}, {"boot_id": "another"}], ids=["another process", "another boot"]
)
def test_a_folder_whose_kit_is_dead_is_removed_and_told_of(here: Path, more: dict[str, object]) -> None:
    """The number of the process is somebody's again: what tells them apart is the start, and the boot."""
    root = folder(here, **identity(os.getpid(), **more))

    [told] = estate.sweep()

    assert f"an earlier run of the kit (process {os.getpid()}) was killed" in told
    assert f"{root} removed" in told
    assert not root.exists()


def test_a_lock_is_enough_where_the_process_cannot_be_seen(here: Path) -> None:
    """In another container on the same folder the note's number means nothing."""
    root, lock = estate.found()
    (root / "kit.json").write_text(json.dumps(identity(os.getpid(), start_ticks=1)))

    while_it_lives = estate.sweep()
    os.close(lock)
    afterwards = estate.sweep()

    assert ([], 1) == (while_it_lives, len(afterwards))


def test_what_is_not_a_kits_folder_is_left_alone(here: Path) -> None:
    dead = identity(os.getpid(), start_ticks=1)
    elsewhere = folder(here, "elsewhere", **dead)
    (here / "kt-tck-link").symlink_to(elsewhere)
    (here / "kt-tck-file").write_text("")
    (here / "kt-tck-without").mkdir()
    (folder(here, "kt-tck-broken") / "kit.json").write_text("{")
    (here / "kt-tck-linked").mkdir()
    (here / "kt-tck-linked" / "kit.json").symlink_to(elsewhere / "kit.json")

    assert [] == estate.sweep()
    assert 6 == len(list(here.iterdir()))


def test_one_at_a_time_takes_a_folder_over(here: Path) -> None:
    root = folder(here, **identity(os.getpid(), start_ticks=1))

    with estate.taken_over(root) as mine, estate.taken_over(root, within_s=0.1) as theirs:
        assert (os.getpid(), None) == (mine and mine["pid"], theirs)


def test_processes_of_a_folder_without_an_engine_are_killed(here: Path) -> None:
    """By their command line, by the mark of their Run, and by its record."""
    root = folder(here, **identity(os.getpid(), start_ticks=1))
    runs = root / "state" / "runs"
    (runs / "run-1").mkdir(parents=True)
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    named = subprocess.Popen([*sleep, str(root)])
    marked = subprocess.Popen(sleep, env={"KT_RUN": "run-1"})
    recorded, stranger = subprocess.Popen(sleep), subprocess.Popen(sleep)
    record = {
        "keeper_pid": recorded.pid,
        "keeper_start_ticks": process_identity.start_ticks(recorded.pid),
        "agent_pid": stranger.pid,
        "agent_start_ticks": 1,
        "boot_id": process_identity.boot_id(),
    }
    (runs / "run-1" / "run.json").write_text(json.dumps(record))

    estate.sweep()

    assert [-9, -9, -9] == [child.wait(10) for child in (named, marked, recorded)]
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()
    assert not root.exists()

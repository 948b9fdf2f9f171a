"""An agent whose output would fill the disk waits, and goes on when there is room again."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests import small_disk
from tests.supervisor.keeper import conftest

from kt_supervisor.keeper import floor, loop

Start = Callable[..., conftest.Run]
MB = 1024 * 1024
TALKER = (
    "import os, time\nn = 0\nwhile True:\n    os.write(1, b'%9d\\n' % n)\n    n += 1\n    time.sleep(0.001)\n"
)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MB that nobody else uses."""
    with small_disk.mounted(tmp_path / "disk", "8m") as folder:
        yield folder


def test_below_the_floor_the_agent_stands_still_and_goes_on_above_it(disk: Path, start: Start) -> None:
    run = start(conftest.python(TALKER), state_dir=disk, free_floor_bytes=4 * MB)
    run.said(b"100\n")
    engine = run.engine()
    ballast = disk / "ballast"

    ballast.write_bytes(bytes(5 * MB))
    engine.event("disk_low")

    status = engine.ask(op="status")
    assert (status["disk_low"], status["paused"], status["phase"]) == (True, False, "running")
    assert Path(f"/proc/{run.agent_pid()}/stat").read_text().split()[2] == "T"
    ballast.unlink()
    engine.event("disk_ok")
    held = len(run.output())
    conftest.until(lambda: len(run.output()) > held + 1000)
    engine.ask(op="stop", timeout_s=0)
    run.ended(engine)
    numbers = [int(line) for line in run.output().splitlines()]
    assert numbers == list(range(len(numbers)))


def test_a_resume_by_the_operator_does_not_lift_the_floor_nor_the_floor_a_pause(
    disk: Path, start: Start
) -> None:
    run = start(conftest.python(TALKER), state_dir=disk, free_floor_bytes=4 * MB)
    run.said(b"100\n")
    engine = run.engine()
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(5 * MB))
    engine.event("disk_low")
    state = Path(f"/proc/{run.agent_pid()}/stat")

    engine.ask(op="pause")
    engine.ask(op="resume")
    after_resume = state.read_text().split()[2]
    engine.ask(op="pause")
    ballast.unlink()
    engine.event("disk_ok")

    assert (after_resume, state.read_text().split()[2]) == ("T", "T")
    assert engine.ask(op="status")["paused"] is True


def test_a_stop_below_the_floor_keeps_the_last_words(disk: Path, start: Start) -> None:
    agent = "import os, signal, sys, time\ndef end(*_):\n    os.write(1, b'w' * 200_000); os._exit(7)\n"
    agent += "signal.signal(15, end)\nos.write(1, b'ready')\nwhile True: time.sleep(1000)\n"
    run = start(conftest.python(agent), state_dir=disk, free_floor_bytes=100 * MB)
    engine = run.engine()
    conftest.until(lambda: engine.ask(op="status")["disk_low"])

    engine.ask(op="stop", timeout_s=20)
    record = run.ended(engine)

    assert record["code"] == 7
    assert run.output() == b"ready" + b"w" * 200_000


def test_no_floor_never_tells_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    turns: list[bool] = []
    none = floor.Floor(loop.Loop(failed=lambda _: None), 0, changed=turns.append)

    none.spent(1 << 40)
    none.lift()

    assert (turns, none.low) == ([], False)

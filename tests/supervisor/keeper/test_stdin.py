"""An interactive agent reads its input until somebody says that this was all."""

import os
from collections.abc import Callable

from tests.supervisor.keeper import conftest

Start = Callable[..., conftest.Run]

READER = "import sys\nprint('ready', flush=True)\ndata = sys.stdin.read()\nprint('got', data, flush=True)"


def test_end_of_input_comes_once_keeper_and_writers_have_closed(start: Start) -> None:
    run = start(conftest.python(READER), interactive=True)
    run.said(b"ready")
    engine = run.engine()
    writer = os.open(run.files.stdin, os.O_WRONLY | os.O_NONBLOCK)
    os.write(writer, b"all of it")
    assert engine.ask(op="status")["stdin"] == "open"

    assert engine.ask(op="eof") == {"ok": True}

    assert engine.ask(op="status")["stdin"] == "closed"
    assert not run.files.stdin.exists()
    assert engine.ask(op="eof") == {"ok": True}
    assert engine.ask(op="status")["phase"] == "running"
    os.close(writer)
    assert run.ended(engine)["code"] == 0
    assert run.output().endswith(b"got all of it\n")


def test_writers_that_come_and_go_end_nothing(start: Start) -> None:
    run = start(["/bin/sh", "-c", "read a; read b; echo $a $b"], interactive=True)
    run.running()
    engine = run.engine()

    for line in (b"one\n", b"two\n"):
        with run.files.stdin.open("wb", buffering=0) as writer:
            writer.write(line)

    assert run.ended(engine)["code"] == 0
    assert run.output() == b"one two\n"


def test_an_agent_without_input_cannot_be_told_that_it_ends(start: Start) -> None:
    run = start(["/bin/sleep", "1000"])
    run.running()
    peer = run.peer()

    answer = peer.ask(op="eof")

    assert (answer["ok"], peer.ask(op="status")["stdin"]) == (False, "none")
    assert "/dev/null" in answer["error"]

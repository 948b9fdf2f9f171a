"""The keeper takes its place in the system, or says why it cannot."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.supervisor.keeper import conftest

from kt_supervisor.keeper import specification

Start = Callable[..., conftest.Run]


def run_keeper(data: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-I", "-S", str(conftest.MAIN)],
        input=data,
        capture_output=True,
        check=False,
        timeout=conftest.DEADLINE_S,
    )


@pytest.mark.parametrize("data", [b"", b"garbage", b"[1]", b'{"protocol": 2}', b'{"protocol": 1}'])
def test_a_specification_that_makes_no_sense_is_refused_in_words(data: bytes) -> None:
    ended = run_keeper(data)

    assert ended.returncode == 2
    assert b"wanted" in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_a_missing_folder_is_refused_and_not_made(tmp_path: Path) -> None:
    data = specification.build(
        run_id="r",
        instance_id="i",
        name="n",
        state_dir=str(tmp_path / "nowhere"),
        argv=["/bin/true"],
        env={},
        cwd="/",
        engine_command=[],
        engine_env={},
    )

    ended = run_keeper(data)

    assert ended.returncode == 2
    assert b"nowhere" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_second_keeper_of_one_run_gives_way(start: Start) -> None:
    first = start(["/bin/sleep", "1000"], run_id="same")
    agent = first.agent_pid()

    second = start(["/bin/sleep", "1000"], run_id="same")

    assert second.process.wait(conftest.DEADLINE_S) == 3
    assert first.peer().ask(op="status")["agent_pid"] == agent
    assert conftest.alive(agent)


def test_the_keeper_leads_a_session_and_holds_nothing_of_its_starter(start: Start, tmp_path: Path) -> None:
    leaked = os.open(tmp_path / "leak", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(leaked, True)
    data = specification.build(
        run_id="r",
        instance_id="i",
        name="n",
        state_dir=str(tmp_path),
        argv=["/bin/sleep", "1000"],
        env={},
        cwd="/",
        engine_command=["/bin/false"],
        engine_env={},
    )
    (tmp_path / "runs/r").mkdir(parents=True)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(conftest.MAIN)], stdin=subprocess.PIPE, close_fds=False
    )
    run = conftest.Run(tmp_path, "r", process)
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.close()
    try:
        run.running()
        held = [str(path.readlink()) for path in Path(f"/proc/{process.pid}/fd").iterdir()]

        assert os.getsid(process.pid) == process.pid
        assert str(tmp_path / "leak") not in held
        assert str(tmp_path / "runs/r/lock") in held
        assert Path(f"/proc/{process.pid}/cwd").readlink() == tmp_path / "runs/r"
    finally:
        run.end()
        os.close(leaked)


def test_nothing_of_the_specification_is_on_disk(start: Start) -> None:
    run = start(
        ["/bin/sh", "-c", "echo started"], env={"KEY": "sk-canary-4711"}, engine_env={"K2": "sk-canary-4711"}
    )
    run.ended()

    files = [path for path in run.state.root.rglob("*") if path.is_file()]

    assert not any(b"sk-canary-4711" in path.read_bytes() for path in files)
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_the_environment_of_the_agent_cannot_be_read_from_the_keeper_by_another_user(start: Start) -> None:
    if os.getuid():
        pytest.skip("looking as another user takes root")
    run = start(["/bin/sleep", "1000"])
    run.running()

    environ = Path(f"/proc/{run.process.pid}/environ")
    code = "import os, sys; os.setuid(65534); open(sys.argv[1], 'rb').read()"

    looked = subprocess.run([*conftest.python(code), str(environ)], capture_output=True, check=False)

    assert b"PermissionError" in looked.stderr

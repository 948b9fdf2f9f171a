import os
import select
import socket
import subprocess
import threading
from pathlib import Path

from kt_supervisor.engine.run import spares
from kt_supervisor.keeper import proctree


def keeper(path: Path, answer: bytes, descriptors: list[int]) -> threading.Thread:
    """Answer one connection as a keeper would."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(path))
    server.listen(1)

    def serve() -> None:
        connection, _ = server.accept()
        connection.recv(100)
        socket.send_fds(connection, [answer], descriptors)
        connection.close()
        server.close()

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def record(process: subprocess.Popen[bytes]) -> dict[str, int | None]:
    return {"agent_pid": process.pid, "agent_start_ticks": proctree.start_ticks(process.pid)}


def test_the_pipes_and_the_process_are_held(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    process = subprocess.Popen(["sleep", "600"])
    serving = keeper(tmp_path / "s", b'{"ok": true, "streams": ["err"]}\n', [ours])

    held = spares.fetch(tmp_path / "s", record(process))
    serving.join()
    os.write(theirs, b"still read")
    process.kill()

    assert {"err", "pidfd"} == set(held.held())
    assert held.err is not None
    assert held.pidfd is not None
    assert b"still read" == os.read(held.err, 100)
    assert select.select([held.pidfd], [], [], 10)[0]
    assert not any(os.get_inheritable(number) for number in held.held().values())
    process.wait()
    held.close()
    assert {} == held.held()
    for number in (ours, theirs):
        os.close(number)


def test_a_process_that_is_another_now_is_not_held(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "600"])
    wrong = record(process) | {"agent_start_ticks": 1}

    held = spares.fetch(tmp_path / "nobody", wrong)

    process.kill()
    process.wait()
    assert {} == held.held()


def test_a_keeper_that_answers_nonsense_leaves_nothing_to_hold(tmp_path: Path) -> None:
    serving = keeper(tmp_path / "s", b"[]\n", [0])

    held = spares.fetch(tmp_path / "s", {})

    serving.join()
    assert {} == held.held()

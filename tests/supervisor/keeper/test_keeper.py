import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kt_ledger import lending, unix_socket
from kt_ledger.clock import SystemClock
from kt_supervisor import keeper as keeper_package

Keep = Callable[..., Any]
WAITS = "while :; do sleep 1000; done"


@pytest.mark.parametrize(
    ("script", "code", "number"),
    [
        ("exit 0", 0, None),
        ("exit 7", 7, None),
        ("exit 255", 255, None),
        ("kill -9 $$", None, 9),
        ("kill -15 $$", None, 15),
    ],
)
def test_the_end_is_told_exactly(keep: Keep, script: str, code: int | None, number: int | None) -> None:
    kept = keep(script)
    kept.hello()

    ended = kept.exited()

    assert (code, number, False, []) == (
        ended["code"],
        ended["signal"],
        ended["stop_asked"],
        ended["survivors"],
    )
    on_disk = json.loads(kept.files.exit.read_text())
    assert on_disk == {name: value for name, value in ended.items() if name != "event"}


def test_an_agent_is_on_record_before_its_first_instruction(keep: Keep) -> None:
    kept = keep('cat "$KEPT_IN"/runs/"$KT_RUN"/run.json')
    kept.hello()

    kept.exited()

    said = json.loads(kept.output())
    assert (kept.spec.run_id, kept.process.pid) == (said["run_id"], said["keeper_pid"])


def test_last_words_are_kept_to_the_byte(keep: Keep) -> None:
    kept = keep(
        python="import os\nos.write(1, b'x' * 200_000)\nos.write(2, b'\\xff\\xfe no newline')\nos._exit(7)"
    )
    kept.hello()

    ended = kept.exited()

    assert (7, b"x" * 200_000, b"\xff\xfe no newline") == (ended["code"], kept.output(), kept.output("err"))
    assert {"segment": 1, "offset": 200_000} == ended["out"]


def test_segments_rotate_and_hold_every_byte_in_order(keep: Keep) -> None:
    kept = keep(python="for n in range(200_000): print(n)", segment_limit_bytes=100_000)
    kept.hello()

    ended = kept.exited()

    wanted = "".join(f"{n}\n" for n in range(200_000)).encode()
    assert wanted == kept.output()
    sizes = [path.stat().st_size for path in sorted(kept.files.root.glob("out-*.log"))]
    assert (len(sizes), sizes[-1]) == (ended["out"]["segment"], ended["out"]["offset"])
    assert len(sizes) > 5
    assert all(100_000 <= size < 100_000 + 65536 for size in sizes[:-1])


def test_the_time_index_points_into_its_segment(keep: Keep) -> None:
    before_ns = SystemClock().wall_ns()
    kept = keep("echo one; echo two")
    kept.hello()
    kept.exited()

    index = kept.files.index("out", 1).read_bytes()

    entries = [
        (int.from_bytes(index[i : i + 8], "little"), int.from_bytes(index[i + 8 : i + 16], "little"))
        for i in range(0, len(index), 16)
    ]
    assert 0 == entries[0][0]
    assert all(offset < 8 and before_ns <= at_ns <= SystemClock().wall_ns() for offset, at_ns in entries)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"argv": ("/nowhere/to/be/found",)}, "cannot start the program"),
        ({"argv": ("/etc/passwd",)}, "is it executable"),
        ({"argv": ("/bin/true",), "cwd": "/nowhere"}, "cannot start its working directory"),
        ({"argv": ("/bin/true",), "env": {"BIG": "x" * 3_000_000}}, "too large together"),
    ],
)
def test_a_program_that_cannot_start_is_explained(keep: Keep, options: dict[str, Any], said: str) -> None:
    kept = keep(**options)

    ended = kept.exit_record()

    assert said in ended["spawn_error"]
    assert (None, None) == (ended["code"], ended["signal"])
    assert kept.spec.run_id == json.loads(kept.files.record.read_text())["run_id"]


@pytest.mark.parametrize(
    "script",
    [
        f"trap '' TERM; {WAITS}",
        f"sh -c '{WAITS}' & {WAITS}",
        f"setsid sh -c '{WAITS}' & {WAITS}",
        f"(setsid sh -c 'trap \"\" TERM HUP; {WAITS}' &) ; {WAITS}",
        f"kill -STOP $$; {WAITS}",
    ],
    ids=["ignores-term", "child", "session", "daemon", "stopped"],
)
def test_stopped_means_an_empty_tree(keep: Keep, script: str) -> None:
    kept = keep(f"echo ready; {script}")
    kept.hello()
    kept.ready()

    assert {"ok": True} == kept.ask(op="stop", timeout_s=0.3)
    ended = kept.exited()

    assert (True, []) == (ended["stop_asked"], ended["survivors"])
    assert [] == processes_of(kept.spec.run_id)


def test_a_stopped_process_ends_by_term_alone(keep: Keep) -> None:
    stops_itself = "\n".join(
        [
            "import os, signal",
            "signal.signal(15, lambda *_: os._exit(3))",
            "print('ready', flush=True)",
            "os.kill(os.getpid(), signal.SIGSTOP)",
            "signal.pause()",
        ]
    )
    kept = keep(python=stops_itself)
    kept.hello()
    kept.ready()

    kept.ask(op="stop", timeout_s=20)
    ended = kept.exited()

    assert (3, False) == (ended["code"], ended["forced"])


def test_a_tree_that_forks_without_end_is_stopped(keep: Keep) -> None:
    forks = "\n".join(
        [
            "import os, signal",
            "signal.signal(15, signal.SIG_IGN)",
            "for _ in range(3000):",
            "    if os.fork(): os._exit(0)",
            "    os.setsid()",
            "signal.pause()",
        ]
    )
    kept = keep(python=f"print('ready', flush=True)\n{forks}")
    kept.hello()
    kept.ready()

    kept.ask(op="stop", timeout_s=0)
    ended = kept.exited()

    assert [] == ended["survivors"]
    assert [] == processes_of(kept.spec.run_id)


def test_the_end_of_the_main_process_sweeps_what_it_left(keep: Keep) -> None:
    kept = keep(f"(setsid sh -c '{WAITS}' &); echo done", sweep_grace_s=0.2)
    kept.hello()

    ended = kept.exited()

    assert (0, False, b"done\n") == (ended["code"], ended["stop_asked"], kept.output())
    assert [] == processes_of(kept.spec.run_id)


def test_a_second_stop_shortens_the_first(keep: Keep) -> None:
    kept = keep(f"trap '' TERM; echo ready; {WAITS}")
    kept.hello()
    kept.ready()
    kept.ask(op="stop", timeout_s=600)

    kept.ask(op="stop", timeout_s=0)

    assert (9, True) == ((ended := kept.exited())["signal"], ended["forced"])


def test_term_to_the_keeper_ends_the_agent_first(keep: Keep) -> None:
    kept = keep(f"echo ready; {WAITS}")
    kept.hello()
    kept.ready()

    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        kept.process.send_signal(number)

    assert 15 == kept.exited()["signal"]


def test_input_does_not_end_while_the_keeper_lives(keep: Keep) -> None:
    kept = keep("cat", interactive=True)
    kept.hello()
    kept.running()

    for text in ("one\n", "two\n"):
        kept.files.stdin.write_text(text)
        kept.read(lambda message: message.get("event") == "output")
        kept.events.clear()

    assert b"one\ntwo\n" == kept.output()
    assert 0o600 == kept.files.stdin.stat().st_mode & 0o777


def test_without_interaction_input_is_empty(keep: Keep) -> None:
    kept = keep("cat; echo ended")
    kept.hello()

    kept.exited()

    assert b"ended\n" == kept.output()


def test_the_agent_inherits_its_streams_and_the_lock_only(keep: Keep) -> None:
    kept = keep("ls -l /proc/self/fd | sed 's/.*-> //'; ps -o ignored= -p $$; umask; pwd")
    kept.hello()

    kept.exited()

    said = kept.output().decode()
    links = [line for line in said.splitlines() if line.startswith(("/", "pipe:")) and "/proc/" not in line]
    assert ["/dev/null", str(kept.files.lock), "/"] == [
        line for line in links if not line.startswith("pipe:")
    ]
    assert 2 == sum(line.startswith("pipe:") for line in links)
    assert "0000000000000000" in said
    assert "0022" in said


def test_a_run_has_one_keeper(keep: Keep) -> None:
    first = keep(f"echo ready; {WAITS}")
    first.hello()
    second = keep(f"echo ready; {WAITS}", run_id=first.spec.run_id, env={"KT_RUN": first.spec.run_id})

    assert 4 == second.process.wait(20)
    assert {"ok": True} == first.ask(op="stop", timeout_s=0)


def test_nonsense_on_the_socket_is_answered_or_dropped(keep: Keep) -> None:
    kept = keep(f"echo ready; {WAITS}")
    kept.hello()

    with kept.connect() as peer:
        peer.sendall(
            b"nonsense\n[]\n"
            + b"[" * 60_000
            + b"\n"
            + b'{"op": "dance"}\n{"op": "stop", "timeout_s": "soon"}\n'
        )
        lines = peer.makefile("rb")
        answers = [json.loads(lines.readline()) for _ in range(5)]
    with kept.connect() as peer:
        peer.sendall(b"x" * 100_000)
        peer.settimeout(20)
        try:
            left = peer.recv(10)
        except ConnectionResetError:
            left = b""

    assert [False] * 5 == [answer["ok"] for answer in answers]
    assert b"" == left
    assert "running" == kept.ask(op="status")["phase"]


def test_a_flood_of_connections_leaves_room_for_the_engine(keep: Keep) -> None:
    kept = keep(f"echo ready; {WAITS}")
    kept.hello()
    flood = [kept.connect() for _ in range(100)]

    answer = kept.ask(op="status")

    assert "running" == answer["phase"]
    for peer in flood:
        peer.close()


def test_an_engine_is_brought_back_unless_it_was_stopped_on_purpose(keep: Keep, tmp_path: Path) -> None:
    came = tmp_path / "came"
    command = ("/bin/sh", "-c", f"echo $$ >> {came}; exec cat /proc/self/stat >> {came}.stat")
    kept = keep(
        f"echo ready; {WAITS}",
        engine_command=command,
        engine_env={"PATH": os.environ["PATH"]},
        engine_wait_s=600,
    )
    kept.hello()
    kept.spec.state.engine_stopped.touch()
    kept.connection.close()
    with kept.connect() as peer:
        for _ in range(50):
            peer.sendall(b'{"op": "status"}\n')
            peer.recv(4096)
    quiet = not came.exists()
    kept.spec.state.engine_stopped.unlink()

    wait_until(lambda: (tmp_path / "came.stat").exists() and (tmp_path / "came.stat").stat().st_size > 0)

    assert quiet
    parent = int((tmp_path / "came.stat").read_text().split()[3])
    assert parent not in (kept.process.pid, os.getpid())
    kept.hello()


def test_an_agent_without_any_engine_still_ends_on_record(keep: Keep) -> None:
    kept = keep("exit 3")

    assert 0 == kept.process.wait(20)
    assert 3 == json.loads(kept.files.exit.read_text())["code"]


def test_a_listener_is_borrowed_lent_on_and_reset_when_nobody_serves(keep: Keep, tmp_path: Path) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    lender = unix_socket.bind(tmp_path / "lend.sock")
    kept = keep(f"echo ready; {WAITS}", lend_from=str(tmp_path / "lend.sock"), gateway_grace_s=0.2)
    gateway, _ = lender.accept()
    gateway.recv(4096)
    lending.lend(gateway, listening)
    kept.hello()
    kept.ready()

    gateway.close()  # the gateway dies; its own descriptor goes with it
    port = listening.getsockname()[1]
    listening.close()
    with socket.create_connection(("127.0.0.1", port)) as agent:
        agent.settimeout(20)
        with pytest.raises(ConnectionResetError):
            agent.recv(1)
    borrowed, connection = lending.borrow(kept.files.socket, "instance")
    with socket.create_connection(("127.0.0.1", port)) as agent:
        borrowed.setblocking(True)
        served, _ = borrowed.accept()
        served.sendall(b"served")
        got = agent.recv(6)

    assert b"served" == got
    with pytest.raises(lending.LendingRefused, match="holds no such"):
        lending.borrow(kept.files.socket, "another")
    for last in (served, connection, borrowed):
        last.close()


def test_without_the_listener_nothing_is_spawned(keep: Keep, tmp_path: Path) -> None:
    kept = keep("echo never", lend_from=str(tmp_path / "nobody.sock"))

    ended = kept.exit_record()

    assert "no listening socket" in ended["spawn_error"]
    assert b"" == kept.output()


def test_a_full_disk_holds_the_agent_back_and_loses_nothing(keep: Keep, tmp_path: Path) -> None:
    disk = tmp_path / "runs"
    disk.mkdir()
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=False).returncode
    ):
        pytest.skip("needs to mount a small disk")
    try:
        filler = disk / "filler"
        kept = keep(python="import sys\nfor n in range(400_000): print(n)\nprint('end')")
        kept.hello()
        filler.write_bytes(b"")
        wait_until(lambda: os.statvfs(disk).f_bavail == 0)
        still = kept.ask(op="status")["phase"]
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)

        ended = kept.exited()

        assert ("running", 0) == (still, ended["code"])
        assert "".join(f"{n}\n" for n in range(400_000)).encode() + b"end\n" == kept.output()
        kept.ask(op="release")
        assert 0 == kept.process.wait(20)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_the_keeper_needs_nothing_installed() -> None:
    main = Path(keeper_package.__file__).parent / "__main__.py"

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", main],
        input=b"no specification",
        capture_output=True,
        check=False,
    )

    assert 2 == done.returncode
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines() if "|" in line}
    assert {"kt_supervisor.keeper.keeper", "kt_ledger.lending"} <= imported
    assert set() == {name.partition(".")[0] for name in imported} & {
        "asyncio",
        "subprocess",
        "pydantic",
        "site",
    }


def processes_of(run_id: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if f"KT_RUN={run_id}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def wait_until(claim: Callable[[], bool]) -> None:
    from selectors import DefaultSelector
    from time import monotonic

    ends = monotonic() + 20
    with DefaultSelector() as nothing:
        while not claim():
            assert monotonic() < ends, "not in time"
            nothing.select(0.01)

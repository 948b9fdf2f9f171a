"""Every byte that an agent wrote is in its log, whatever the bytes and however it ended."""

import os
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import small_disk
from tests.supervisor.keeper import conftest

from kt_supervisor.keeper import capture, loop, segments

Start = Callable[..., conftest.Run]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("os.write(1, b'no final newline')", b"no final newline"),
        ("os.write(1, bytes(range(256)) * 4)", bytes(range(256)) * 4),
        ("sys.stdout.buffer.write(b'x' * 10_000_000 + b'\\n')", b"x" * 10_000_000 + b"\n"),
        ("pass", b""),
    ],
    ids=["no newline", "invalid utf-8 and nul", "10 MB line", "nothing"],
)
def test_output_arrives_byte_for_byte(start: Start, code: str, expected: bytes) -> None:
    run = start(conftest.python(f"import os, sys; {code}"))

    record = run.ended()

    assert expected == run.output()
    assert {"segment": 1, "offset": len(expected)} == record["out"]


def test_last_words_before_a_hard_exit_are_kept_with_the_code(start: Start) -> None:
    run = start(
        conftest.python("import os; os.set_blocking(1, True); os.write(1, b'w' * 200_000); os._exit(7)")
    )

    record = run.ended()

    assert run.output() == b"w" * 200_000
    assert (record["code"], record["signal"]) == (7, None)


def test_both_streams_are_kept_apart(start: Start) -> None:
    run = start(["/bin/sh", "-c", "echo out; echo err >&2"])

    record = run.ended()

    assert (run.output("out"), run.output("err")) == (b"out\n", b"err\n")
    assert record["err"] == {"segment": 1, "offset": 4}


def test_segments_joined_are_the_stream_and_none_exceeds_the_limit(start: Start) -> None:
    code = "import sys\nfor n in range(200_000): sys.stdout.write('line %d\\n' % n)"
    run = start(conftest.python(code), segment_limit_bytes=100_000)

    record = run.ended()

    segments = sorted(run.files.root.glob("out-*.log"))
    assert b"".join(b"line %d\n" % n for n in range(200_000)) == run.output()
    assert len(segments) == record["out"]["segment"] > 10
    assert all(path.stat().st_size == 100_000 for path in segments[:-1])
    assert segments[-1].stat().st_size == record["out"]["offset"]
    assert {0o600} == {path.stat().st_mode & 0o777 for path in run.files.root.glob("out-*")}


def test_a_reader_that_follows_by_the_rule_misses_nothing(start: Start) -> None:
    code = "import sys\nfor n in range(300_000): sys.stdout.write('line %d\\n' % n)"
    run = start(conftest.python(code), segment_limit_bytes=50_000)
    engine = run.engine()
    read = bytearray()
    number = 1
    file = None

    while not run.files.exit.exists() or run.files.segment("out", number + 1).exists():
        if file is None:
            conftest.until(run.files.segment("out", number).exists)
            file = run.files.segment("out", number).open("rb")
        complete = run.files.segment("out", number + 1).exists()
        read += file.read()
        if complete:
            file.close()
            file, number = None, number + 1
    read += file.read() if file else run.files.segment("out", number).read_bytes()

    run.ended(engine)
    assert run.output() == bytes(read)
    assert read[-12:] == b"line 299999\n"


def test_the_index_gives_each_copied_chunk_its_time(start: Start) -> None:
    before_ns = time.time_ns()
    run = start(["/bin/sh", "-c", "echo one; read line; echo two"], interactive=True)
    run.said(b"one\n")
    between_ns = time.time_ns()

    with run.files.stdin.open("wb", buffering=0) as writer:
        writer.write(b"\n")
    run.ended()

    entries = list(struct.iter_unpack("<QQ", run.files.index("out", 1).read_bytes()))
    assert [offset for offset, _ in entries] == [0, 4]
    assert before_ns <= entries[0][1] <= between_ns <= entries[1][1] <= time.time_ns()


def test_a_grandchild_that_holds_the_pipe_does_not_hold_the_exit(start: Start) -> None:
    run = start(["/bin/sh", "-c", "setsid sleep 1000 & echo $!; exit 5"])

    record = run.ended()

    assert record["code"] == 5
    assert record["survivors"] == []
    assert not conftest.alive(int(run.output()))


def test_an_agent_that_closes_its_streams_goes_on(start: Start) -> None:
    run = start(["/bin/sh", "-c", "echo bye; exec >&- 2>&-; read line"], interactive=True)
    run.said(b"bye\n")
    engine = run.engine()

    answer = engine.ask(op="status")

    assert answer["phase"] == "running"


def test_a_full_disk_makes_the_agent_wait_and_loses_nothing(start: Start, tmp_path: Path) -> None:
    with small_disk.mounted(tmp_path / "disk", "512k") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(b"b" * 200_000)
        run = start(
            conftest.python("import os\nfor n in range(2000): os.write(1, b'%d ' % n * 50)"),
            state_dir=disk,
            free_floor_bytes=0,
        )
        engine = run.engine()
        conftest.until(lambda: os.statvfs(disk).f_bavail == 0)
        assert engine.ask(op="status")["phase"] == "running"

        stuck = len(run.output())
        expected = b"".join(b"%d " % n * 50 for n in range(2000))
        assert stuck < len(expected)
        ballast.unlink()
        remount = ["mount", "-o", "remount,size=8m", str(disk)]
        subprocess.run(remount, check=True)
        record = run.ended(engine)

        assert expected == run.output()
        assert record["code"] == 0
        assert "output flows again" in run.files.keeper_log.read_text()
        run.end()


def test_a_run_that_begins_on_a_full_disk_is_recorded_as_not_started_once_there_is_room(
    start: Start, tmp_path: Path
) -> None:
    with small_disk.mounted(tmp_path / "disk", "64k") as disk:
        ballast = disk / "ballast"
        with pytest.raises(OSError), ballast.open("wb", buffering=0) as file:
            while file.write(b"b" * 4096):
                pass
        run = start(["/bin/touch", str(tmp_path / "never")], state_dir=disk)
        engine = run.engine()
        assert run.hello["phase"] in ("spawning", "stopping")

        ballast.unlink()
        record = run.ended(engine)

        assert "record could not be written" in record["spawn_error"]
        assert not (tmp_path / "never").exists()
        run.end()


def test_a_segment_that_meets_a_file_size_limit_continues_in_the_next(tmp_path: Path) -> None:
    code = (
        "import os, resource, signal\n"
        "from kt_supervisor.keeper import segments\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "log = segments.Segments('out', limit_bytes=10_000)\n"
        "left = memoryview(b'a' * 2500)\n"
        "while left:\n"
        "    try:\n"
        "        left = left[log.append(left, 1):]\n"
        "    except OSError:\n"
        "        pass\n"
    )
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(conftest.REPOSITORY / p) for p in ("supervisor", "ledger")])
    }
    subprocess.run(
        [*conftest.python("")[:1], "-S", "-c", code], cwd=tmp_path, env=env, check=True, timeout=20
    )

    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("out-*.log"))]

    assert sizes == [1000, 1000, 500]


def test_a_time_that_cannot_be_noted_is_left_out_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = segments.Segments("out", limit_bytes=1000)
    log.append(memoryview(b"one"), 11)
    index = tmp_path / "out-000001.idx"

    with index.open("ab") as torn:
        torn.write(b"torn")
    reopened = segments.Segments("out", limit_bytes=1000)
    reopened.append(memoryview(b"two"), 22)

    assert list(struct.iter_unpack("<QQ", index.read_bytes())) == [(0, 11), (3, 22)]
    assert (tmp_path / "out-000001.log").read_bytes() == b"onetwo"


def test_a_copier_without_a_pipe_has_nothing_to_drain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    copier = capture.Copier(
        loop.Loop(failed=lambda _: None),
        segments.Segments("out", limit_bytes=10),
        copied=lambda _: None,
        note=lambda _: None,
    )

    assert copier.drain(100)
    assert copier.position() == {"segment": 1, "offset": 0}

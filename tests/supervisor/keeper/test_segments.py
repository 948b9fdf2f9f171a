"""Bytes move from a pipe into segments, by splice or by hand, and are in exactly one of the two at any moment."""

import os
import random
import resource
from pathlib import Path

import pytest
from tests.supervisor.keeper import conftest

from kt_supervisor.keeper import segments


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("out-*.log"))]


@pytest.mark.parametrize("spliced", [True, False])
def test_what_goes_in_comes_out_in_segments_that_are_full(here: Path, spliced: bool) -> None:
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    print(f"seed {seed}")
    log = segments.Segments("out", limit_bytes=1000, spliced=spliced)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    expected = b""

    for _ in range(50):
        data = chance.randbytes(chance.randrange(1, 3000))
        expected += data
        os.write(writer, data)
        with pytest.raises(BlockingIOError):
            while log.take(reader):
                pass
    os.close(writer)

    assert log.take(reader) == 0
    os.close(reader)
    assert log.spliced is spliced
    *full, last = files(here)
    assert expected == b"".join([*full, last])
    assert all(len(segment) == 1000 for segment in full)
    assert (len(full) + 1, len(last)) == (log.number, log.offset)
    assert log.retired()
    log.sync()
    assert not log.retired()


@pytest.mark.parametrize("spliced", [True, False])
def test_a_disk_that_refuses_takes_nothing_away(here: Path, spliced: bool) -> None:
    code = (
        "import os, resource, signal\n"
        "from kt_supervisor.keeper import segments\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"log = segments.Segments('out', limit_bytes=10_000, spliced={spliced})\n"
        "log.open()\n"
        "reader, writer = os.pipe()\n"
        "os.write(writer, b'a' * 5000)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))\n"
        "for _ in range(3):\n"
        "    try: log.take(reader)\n"
        "    except OSError: pass\n"
        "    else: raise SystemExit('the disk took it')\n"
        "assert log.offset == 0\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "os.set_blocking(reader, False)\n"
        "assert log.take(reader) == 5000 and not log.in_hand_bytes()\n"
    )
    rooms = [str(conftest.REPOSITORY / room) for room in ("supervisor", "ledger")]
    child = os.posix_spawn(
        conftest.python("")[0],
        ["python", "-c", code],
        os.environ | {"PYTHONPATH": os.pathsep.join(rooms)},
    )

    _, status = os.waitpid(child, 0)

    assert status == 0
    assert files(here) == [b"a" * 5000]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_another_keepers_last_segment_goes_on(here: Path) -> None:
    before = segments.Segments("out", limit_bytes=4)
    for word in (b"one ", b"two ", b"th"):
        before.append(memoryview(word), 1)

    after = segments.Segments("out", limit_bytes=4)
    after.resume()
    after.open()
    after.append(memoryview(b"re"), 2)

    assert (after.number, after.offset) == (3, 4)
    assert files(here) == [b"one ", b"two ", b"thre"]
    before.sync()
    after.sync()


def test_another_keeper_goes_on_behind_segments_that_were_deleted(here: Path) -> None:
    before = segments.Segments("out", limit_bytes=4)
    for word in (b"one ", b"two ", b"three"):
        before.append(memoryview(word), 1)
    (here / "out-000001.log").unlink()
    (here / "out-000002.log").unlink()

    after = segments.Segments("out", limit_bytes=9)
    after.resume()
    after.open()
    after.append(memoryview(b"re"), 2)

    assert (3, 7) == (after.number, after.offset)
    assert [b"threere"] == files(here)
    before.sync()
    after.sync()


def test_only_few_full_segments_wait_for_the_disk(here: Path) -> None:
    log = segments.Segments("out", limit_bytes=1)
    before = len(list(Path("/proc/self/fd").iterdir()))

    for _ in range(100):
        log.append(memoryview(b"x"), 1)

    assert len(list(Path("/proc/self/fd").iterdir())) - before <= segments.MAX_RETIRED + 3
    log.sync()

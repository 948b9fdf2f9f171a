"""The journal on real files: what a reader finds after success, after a full disk, and after a kill."""

import asyncio
import fcntl
import json
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import small_disk
from tests.gateway.mitm.gateway import eventually

from kt_gateway.journal.turns import SUPERSEDED_LIMIT
from kt_gateway.journal.writer import JournalWriter
from kt_ledger import durable, journal, layout

HEADER = {"incarnation": "inc", "pid": 1}


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(work(), 20)

    asyncio.run(bounded())


def read(folder: Path) -> list[journal.Record]:
    found: list[journal.Record] = []
    for path in sorted(folder.glob("*.ktj")):
        for each in journal.read(path.read_bytes()):
            assert isinstance(each, journal.Record), each
            found.append(each)
    return found


def xs(folder: Path, type_: int = journal.CLOSE) -> list[Any]:
    return [record.fields["x"] for record in read(folder) if record.type == type_]


def is_locked(path: Path) -> bool:
    with path.open("r+b") as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


async def until(look: Callable[[], bool]) -> None:
    while not look():  # noqa: ASYNC110  # the writer's thread tells nobody
        await asyncio.sleep(0.005)  # pause: between two looks at a file


def test_a_record_is_with_the_kernel_when_append_returns(tmp_path: Path) -> None:
    async def work() -> None:
        writer = JournalWriter(tmp_path / "j", header=HEADER, slow_sync_s=0.3)
        assert writer.append(journal.OPEN, {"x": 1})
        assert xs(tmp_path / "j", journal.OPEN) == [1]
        writer.close()

    run(work)


def test_the_first_record_of_each_segment_says_whose_it_is(tmp_path: Path) -> None:
    async def work() -> None:
        writer = JournalWriter(tmp_path / "j", header=HEADER, segment_limit_bytes=400)
        for number in range(20):
            writer.append(journal.CLOSE, {"x": number, "pad": "p" * 100})
        assert await writer.durable()
        writer.close()

    run(work)

    paths = sorted((tmp_path / "j").glob("*.ktj"))
    assert len(paths) > 3
    assert [layout.journal_segment(tmp_path / "j", number + 1) for number in range(len(paths))] == paths
    for number, path in enumerate(paths, 1):
        first = next(iter(journal.read(path.read_bytes())))
        assert isinstance(first, journal.Record)
        assert first.fields == {**HEADER, "segment": number}
        assert path.stat().st_size <= 400
    assert xs(tmp_path / "j") == list(range(20))


def test_files_are_ours_alone_and_the_folder_is_locked_for_life(tmp_path: Path) -> None:
    async def work() -> None:
        writer = JournalWriter(tmp_path / "j", header=HEADER)
        assert is_locked(tmp_path / "j" / "lock")
        writer.close()
        assert not is_locked(tmp_path / "j" / "lock")

    run(work)

    assert stat.S_IMODE((tmp_path / "j").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "j").iterdir()} == {0o600}


def test_durable_waits_for_a_sync_and_one_sync_serves_all(tmp_path: Path) -> None:
    async def work() -> None:
        writer = JournalWriter(tmp_path / "j", header=HEADER, slow_sync_s=0.2)
        loop = asyncio.get_running_loop()
        began = loop.time()
        writer.append(journal.CLOSE, {"x": 0})
        first = asyncio.ensure_future(writer.durable())
        await asyncio.sleep(0)
        later = []
        for number in range(1, 50):
            writer.append(journal.CLOSE, {"x": number})
            later.append(asyncio.ensure_future(writer.durable()))
        assert await first
        assert loop.time() - began >= 0.2
        assert all(await asyncio.gather(*later))
        assert loop.time() - began < 0.2 * 5
        writer.close()

    run(work)


def test_what_is_durable_already_costs_no_sync(tmp_path: Path) -> None:
    async def work() -> None:
        writer = JournalWriter(tmp_path / "j", header=HEADER, slow_sync_s=0.2)
        writer.append(journal.CLOSE, {"x": 0})
        await writer.durable()
        began = asyncio.get_running_loop().time()
        assert await writer.durable()
        assert asyncio.get_running_loop().time() - began < 0.1
        writer.close()

    run(work)


def test_records_that_nobody_waits_for_are_made_durable_soon(tmp_path: Path) -> None:
    async def work() -> None:
        writer = JournalWriter(tmp_path / "j", header=HEADER)
        writer.append(journal.LOCAL, {"x": 0})
        await until(lambda: not writer._kept)
        writer.close()

    run(work)


def test_progress_is_told_after_each_write(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    async def work() -> None:
        writer = JournalWriter(
            tmp_path / "j", header=HEADER, on_progress=lambda: told.append(writer.position)
        )
        writer.append(journal.OPEN, {"x": 1})
        writer.append(journal.CLOSE, {"x": 1})
        writer.close()

    run(work)

    ends = [record.end for record in read(tmp_path / "j")]
    assert told == [(1, ends[1]), (1, ends[2])]


def test_a_stuck_sync_releases_its_waiters_and_rewrites_their_records(tmp_path: Path) -> None:
    async def work() -> None:
        writer = JournalWriter(tmp_path / "j", header=HEADER, slow_sync_s=0.6, stuck_after_s=0.1)
        writer.append(journal.OPEN, {"x": 1})
        writer.append(journal.CLOSE, {"x": 1})
        assert await writer.durable() is False
        assert writer.healthy is False
        assert await writer.durable() is False
        assert await writer.usable(0.01) is False
        assert writer.append(journal.OPEN, {"x": 2}, keep=False) is False
        assert writer.append(journal.CLOSE, {"x": 3}) is False
        assert await writer.usable(5) is True
        assert writer.append(journal.OPEN, {"x": 4}) is True
        writer.close()

    run(work)

    rewritten = [record for record in read(tmp_path / "j") if record.fields.get("unsynced")]
    assert [record.fields["x"] for record in rewritten] == [1, 3]
    assert set(xs(tmp_path / "j")) == {1, 3}
    assert set(xs(tmp_path / "j", journal.OPEN)) == {1, 4}


LIMITED = """
import asyncio, json, resource, sys
from pathlib import Path
from kt_gateway.journal.turns import SUPERSEDED_LIMIT
from kt_gateway.journal.writer import JournalWriter
from kt_ledger import journal

async def main():
    folder = Path(sys.argv[1])
    writer = JournalWriter(folder, header={"pid": 1})
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    seen = []
    for number in range(30):
        written = writer.append(journal.CLOSE, {"x": number, "pad": "p" * 300})
        seen.append((written, await writer.durable(), writer.healthy))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    usable = await writer.usable(10)
    writer.append(journal.CLOSE, {"x": 99})
    after = await writer.durable()
    writer.close()
    print(json.dumps({"seen": seen, "usable": usable, "after": after}))

asyncio.run(main())
"""


def test_a_file_that_takes_no_more_is_given_up_and_nothing_is_lost(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "j"), "4000"]

    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)

    facts = json.loads(told.stdout)
    assert facts["seen"][0] == [True, True, True]
    assert [False, False, False] in facts["seen"]
    assert (facts["usable"], facts["after"]) == (True, True)
    assert "journal cannot be written" in told.stderr
    assert set(range(30)) | {99} == set(xs(tmp_path / "j"))
    # What was durable before the failure is not written twice.
    assert xs(tmp_path / "j").count(0) == 1


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 1 MiB; only root can."""
    with small_disk.mounted(tmp_path / "disk", "1m") as folder:
        yield folder


def test_a_full_disk_is_survived(full_disk: Path) -> None:
    async def work() -> None:
        writer = JournalWriter(full_disk / "j", header=HEADER)
        filler = full_disk / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass
        number = 0
        while writer.append(journal.CLOSE, {"x": number, "pad": "p" * 500}):
            number += 1
        assert await writer.durable() is False
        assert await writer.usable(0.7) is False
        writer.append(journal.CLOSE, {"x": number + 1})
        filler.unlink()
        assert await writer.usable(10) is True
        assert set(xs(full_disk / "j")) == set(range(number + 2))
        writer.close()

    run(work)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from kt_gateway.journal.turns import SUPERSEDED_LIMIT
from kt_gateway.journal.writer import JournalWriter
from kt_ledger import journal

async def main():
    writer = JournalWriter(Path(sys.argv[1]), header={"pid": 1}, slow_sync_s=60)
    for number in range(1000):
        writer.append(journal.CLOSE, {"x": number})
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_a_killed_process_loses_nothing_that_was_appended(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path / "j")], check=False)

    assert killed.returncode == -9
    assert xs(tmp_path / "j") == list(range(1000))


class HangingDisk:
    """fdatasync, some calls of which do not return until told: a disk that hangs for some files, or for a while."""

    def __init__(self, *hanging: int) -> None:
        self.calls = 0
        self.hung = 0
        self.go_on = threading.Event()
        self._hanging = set(hanging)

    def sync(self, descriptor: int) -> None:
        self.calls += 1
        if self.calls in self._hanging:
            self.hung += 1
            self.go_on.wait(20)
        durable.durable(descriptor)


@pytest.mark.parametrize(
    "hanging", [(1,), (1, 2), (1, 2, 3)], ids=["the sync", "and a recovery", "and a second"]
)
@pytest.mark.parametrize("comes_back", [False, True])
def test_a_sync_that_never_returns_is_left_to_itself_and_a_fresh_segment_goes_on(
    tmp_path: Path, hanging: tuple[int, ...], comes_back: bool
) -> None:
    disk = HangingDisk(*hanging)

    async def work() -> None:
        writer = JournalWriter(tmp_path / "j", header=HEADER, stuck_after_s=0.1, sync=disk.sync)
        writer.append(journal.OPEN, {"x": 1})
        writer.append(journal.CLOSE, {"x": 1})
        assert await writer.durable() is False
        writer.append(journal.CLOSE, {"x": 2})
        assert await writer.usable(10) is True
        if comes_back:
            disk.go_on.set()
            await until(lambda: threading.active_count() <= threads + 1)
        for number in range(3, 60):
            assert writer.append(journal.CLOSE, {"x": number}) is True
            assert await writer.durable() is True
        writer.close()
        disk.go_on.set()

    threads = threading.active_count()
    run(work)

    assert len(hanging) == disk.hung
    assert set(range(1, 60)) == set(xs(tmp_path / "j"))
    assert {1} == set(xs(tmp_path / "j", journal.OPEN))
    assert {1, 2} == {record.fields["x"] for record in read(tmp_path / "j") if record.fields.get("unsynced")}
    assert not [path.name for path in (tmp_path / "j").iterdir() if comes_back and path.name.startswith(".")]


def test_a_disk_that_hangs_for_everybody_is_waited_for_by_a_few_and_used_again(tmp_path: Path) -> None:
    disk = HangingDisk(*range(1, 1000))

    async def work() -> None:
        writer = JournalWriter(tmp_path / "j", header=HEADER, stuck_after_s=0.05, sync=disk.sync)
        writer.append(journal.CLOSE, {"x": 1})
        assert await writer.durable() is False
        await until(lambda: disk.hung > SUPERSEDED_LIMIT)
        assert await writer.usable(0.7) is False
        assert SUPERSEDED_LIMIT + 1 == disk.hung
        disk.go_on.set()
        assert await writer.usable(10) is True
        writer.append(journal.CLOSE, {"x": 2})
        assert await writer.durable() is True
        writer.close()

    run(work)

    assert {1, 2} == set(xs(tmp_path / "j"))


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
def test_descriptors_come_back_from_hung_syncs(tmp_path: Path) -> None:
    disk = HangingDisk(1, 4, 7)

    async def work() -> None:
        writer = JournalWriter(
            tmp_path / "j", header=HEADER, stuck_after_s=0.05, sync=disk.sync, segment_limit_bytes=300
        )
        for number in range(20):
            writer.append(journal.CLOSE, {"x": number})
            await writer.durable()
            assert await writer.usable(10) is True
        disk.go_on.set()
        writer.close()

    before = open_files()
    run(work)

    eventually(lambda: open_files() <= before)
    assert set(range(20)) == set(xs(tmp_path / "j"))

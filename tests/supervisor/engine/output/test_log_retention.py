import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from kt_ledger.layout import StateLayout
from kt_supervisor.engine.output import log_retention, run_logs
from kt_supervisor.engine.output.cursor import Cursor
from kt_supervisor.engine.output.log_retention import Folded
from kt_supervisor.engine.output.segments import Segments, earlier_bytes
from kt_supervisor.engine.run import run_records

MEBI = 1 << 20
FLOOD = """
import sys, time
line = "x" * 100
for n in range(40_000):
    print(n, line)
    print(n, line, file=sys.stderr)
    if n % 100 == 0:
        print('KTESIO_USAGE {"sequence": %d, "input_tokens": 3, "output_tokens": 1}' % (n // 100), flush=True)
print("done", flush=True)
time.sleep(600)
"""


def on_disk(house: Any, run_id: str) -> int:
    found = [*house.files.run(run_id).root.glob("out-*"), *house.files.run(run_id).root.glob("err-*")]
    sizes = 0
    for path in found:
        with contextlib.suppress(FileNotFoundError):  # deleted meanwhile: that is what is tested
            sizes += path.stat().st_size
    return sizes


def test_a_flood_keeps_within_its_cap_loses_no_report_and_every_reader_is_told(house: Any) -> None:
    house.register("bot", FLOOD)
    house.set("bot", "logs.cap", "1M")
    run_id = house.start("bot")["run_id"]
    read = lambda query: list(house.link.lines(f"/v1/agents/bot/logs?{query}", timeout_s=40))  # noqa: E731

    house.until(lambda: read("tail=1&stream=out")[-1]["text"] == "done", "it has said everything")
    # Two segments of an eighth below the cap nothing more is deleted, and what is read twice is the same.
    house.until(lambda: on_disk(house, run_id) <= MEBI * 3 // 4, "it is within its cap, and at rest")
    everything, usage = read(""), house.entry("bot")["usage"]

    reported = usage["sources"]["self-reported"]
    assert (400, 1200) == (reported["events"], reported["input_tokens"])
    gaps = [line for line in everything if "gap" in line]
    assert {"agent-out", "agent-err"} == {
        name for line in gaps for name in ("agent-out", "agent-err") if name in line["text"]
    }
    assert all("deleted to keep the disk cap" in line["text"] for line in gaps)
    lines = [line for line in everything if line["stream"] == "agent-out"]
    written = sum(len(f"{n} ") + 101 for n in range(40_000))
    report = 'KTESIO_USAGE {"sequence": , "input_tokens": 3, "output_tokens": 1}\n'
    written += sum(len(report) + len(str(n)) for n in range(400))
    kept = sum(len(line["text"]) + 1 for line in lines) - len("done\n")
    # More than one where something went while it was being read.
    missed = sum(line["gap"]["missed_bytes"] for line in gaps if "agent-out" in line["text"])
    assert 0 <= written - kept - missed <= 102  # a line that a deletion cut is told as nothing else
    assert everything[5:] == read(f"after={everything[4]['position']}")


def test_a_flood_never_takes_much_more_than_its_cap_and_goes_on(house: Any) -> None:
    code = "import os, time\nfor _ in range(6400): os.write(1, (b'y' * 99 + b'\\n') * 100)\ntime.sleep(600)"
    house.register("bot", code)
    house.set("bot", "logs.cap", "8M")
    run_id = house.start("bot")["run_id"]
    most = 0

    def all_written() -> bool:
        nonlocal most
        most = max(most, on_disk(house, run_id))
        return sum(1 for _ in house.files.run(run_id).root.glob("out-*.log")) and last(house, run_id) >= 61

    house.until(all_written, "64 MB went through a cap of 8")

    assert most <= 10 * MEBI


def last(house: Any, run_id: str) -> int:
    """Return the number of the last segment."""
    return max(int(path.stem.partition("-")[2]) for path in house.files.run(run_id).root.glob("out-*.log"))


@pytest.mark.chaos
@pytest.mark.long
def test_a_report_is_counted_whose_engine_died_before_its_segment_went(house: Any) -> None:
    house.register("bot", FLOOD)
    house.set("bot", "logs.cap", "1M")
    house.start("bot")
    house.kill_engine()
    house.wait_for_engine()

    house.until(
        lambda: house.entry("bot")["usage"]["sources"].get("self-reported", {}).get("events") == 400,
        "every report is counted",
    )


def make_run(state: StateLayout, number: int, write: Any, *portions: bytes) -> run_logs.KnownRun:
    run = state.run(f"run{number}")
    run.root.mkdir(parents=True)
    owner = {"instance_id": "i", "name": "bot", "number": number}
    run_records.owner_file(run).write_text(json.dumps(owner))
    for at, data in enumerate(portions, start=1):
        write(run, "out", at, (number * 100 + at, data))
    return run_logs.KnownRun(number, run)


def test_nothing_goes_that_is_not_folded_or_still_written(tmp_path: Path, write: Any) -> None:
    run = make_run(StateLayout(tmp_path), 1, write, b"a\n", b"b\n", b"c\n", b"d\n")
    [out, err] = log_retention.stock_of(run)

    not_folded = log_retention.delete_oldest([out, err], {"run1": Folded(1, ended=False)}, 1000)
    half_folded = log_retention.delete_oldest([out, err], {"run1": Folded(3, ended=False)}, 1000)
    all_folded = log_retention.delete_oldest([out, err], {"run1": Folded(9, ended=False)}, 1000)

    assert (0, 36, 18) == (not_folded, half_folded, all_folded)
    assert [4] == Segments(run.files, "out").numbers()


def test_the_oldest_of_both_streams_goes_first_and_only_as_much_as_needed(tmp_path: Path, write: Any) -> None:
    run = make_run(StateLayout(tmp_path), 1, write)
    for stream, times in (("out", (1, 4, 5)), ("err", (2, 3, 6))):
        for number, at_ns in enumerate(times, start=1):
            write(run.files, stream, number, (at_ns, b"12345678"))
    stocks = log_retention.stock_of(run)

    log_retention.delete_oldest(stocks, {"run1": Folded(9, ended=False)}, 50)

    assert [2, 3] == Segments(run.files, "out").numbers()
    assert [3] == Segments(run.files, "err").numbers()


def test_a_deletion_that_a_crash_cut_short_is_finished_and_told_once(tmp_path: Path, write: Any) -> None:
    run = make_run(StateLayout(tmp_path), 1, write, b"abc", b"d\n", b"e\n")
    segments = Segments(run.files, "out")
    copy = run.files.segment("out", 2).read_bytes()
    log_retention.delete(segments, [1, 2])
    run.files.segment("out", 2).write_bytes(copy)  # as if the engine had died before it unlinked this one

    log_retention.stock_of(run)
    [gap, line] = Cursor(segments).lines(final=True)

    assert not run.files.segment("out", 2).exists()
    assert gap.gap is not None
    assert (5, b"e") == (gap.gap.missed_bytes, line.data)


def test_a_forgotten_run_leaves_its_numbers_to_the_next_one(tmp_path: Path, write: Any) -> None:
    state = StateLayout(tmp_path)
    runs = [make_run(state, number, write, b"12345\n") for number in (1, 2, 3)]

    log_retention.forget(runs[0], runs[1])
    log_retention.forget(runs[1], runs[2])

    assert ["run3"] == [run.id for run in run_logs.numbered(state, "i")]
    assert 12 == earlier_bytes(runs[2].files)


def test_segments_are_small_enough_for_the_cap_to_hold() -> None:
    assert 16 * MEBI == log_retention.segment_limit_bytes(256 * MEBI)
    assert MEBI == log_retention.segment_limit_bytes(8 * MEBI)
    assert 64 << 10 == log_retention.segment_limit_bytes(1)

import json
from pathlib import Path

from kt_ledger.layout import RunLayout, StateLayout
from kt_supervisor.engine.output import run_logs
from kt_supervisor.engine.run import run_records


def test_the_last_lines_come_from_the_last_segments(tmp_path: Path) -> None:
    files = RunLayout(tmp_path)
    files.segment("out", 1).write_bytes(b"early\n")
    files.segment("out", 2).write_bytes(b"late\n")
    files.segment("err", 1).write_bytes(b"why\n")

    assert ["late", "why"] == run_logs.last_lines(run_logs.KnownRun(1, files))


def test_runs_are_in_the_order_of_their_numbers_whatever_the_clock_said(tmp_path: Path) -> None:
    state = StateLayout(tmp_path)
    for name, number, whose in (("b", 1, "i"), ("a", 2, "i"), ("c", 1, "other")):
        state.run(name).root.mkdir(parents=True)
        owner = {"instance_id": whose, "name": "bot", "number": number}
        run_records.owner_file(state.run(name)).write_text(json.dumps(owner))
    strangers: set[str] = set()

    found = run_logs.numbered(state, "i", strangers=strangers)

    assert [("b", 1), ("a", 2)] == [(run.id, run.number) for run in found]
    assert {"c"} == strangers
    assert 3 == run_logs.next_number(state, "i")
    assert 1 == run_logs.next_number(state, "nobody")

"""The keeper's names are the layout's names."""

from pathlib import Path

from kt_ledger import layout
from kt_supervisor.keeper import places


def test_the_names_of_a_runs_files_are_those_of_the_layout() -> None:
    run = layout.RunLayout(Path("/state/runs/r"))

    names = [places.LOCK, places.RUN, places.EXIT, places.SOCKET, places.LOG, places.STDIN]
    names += [places.segment("out", 12), places.index("err", 3)]

    expected = [run.lock, run.record, run.exit, run.socket, run.keeper_log, run.stdin]
    expected += [run.segment("out", 12), run.index("err", 3)]
    assert [str(path) for path in expected] == [f"/state/runs/r/{name}" for name in names]


def test_the_names_of_the_engines_files_are_those_of_the_layout() -> None:
    state = layout.StateLayout(Path("/state"))

    names = [places.ENGINE_STOPPED, places.ENGINE_SOCKET, places.ENGINE_LOG, places.ENGINE_WAKING]

    expected = [state.engine_stopped, state.engine_socket, state.engine_log, state.engine_waking]
    assert [str(path) for path in expected] == [f"/state/{name}" for name in names]
    assert str(state.run("r").root) == places.run_folder("/state", "r")

"""Records appear whole or not at all."""

import json
import os
from pathlib import Path

import pytest

from kt_supervisor.keeper import records


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_record_replaces_the_one_before_and_leaves_nothing_beside_it(here: Path) -> None:
    records.replace("run.json", {"a": 1})
    records.replace("run.json", {"a": "ü"})

    assert [path.name for path in here.iterdir()] == ["run.json"]
    assert json.loads((here / "run.json").read_bytes()) == {"a": "ü"}
    assert (here / "run.json").stat().st_mode & 0o777 == 0o600


def test_a_record_that_cannot_be_put_in_place_raises_and_the_folder_counts_as_there(here: Path) -> None:
    (here / "exit.json").mkdir()

    with pytest.raises(OSError):
        records.replace("exit.json", {})

    assert not records.folder_gone()


def test_a_deleted_folder_is_noticed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = here / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)

    gone.rmdir()

    assert records.folder_gone()


def test_notes_end_at_their_limit_and_never_raise(here: Path) -> None:
    log = records.open_log()
    notes = records.Notes(log)
    for _ in range(400):
        notes.add("x" * 1000 + "\udcff")
    os.close(log)

    notes.add("into a closed descriptor, and the story is not yet too long")

    assert 250_000 < (here / "keeper.log").stat().st_size <= records.MAX_NOTES_BYTES


def test_an_error_is_described_with_its_way() -> None:
    def inner() -> None:
        raise KeyError("k")

    try:
        inner()
    except KeyError as error:
        text = records.described(error)

    assert text.startswith("KeyError: 'k' [test_records.py:")
    assert text.endswith(" inner]")

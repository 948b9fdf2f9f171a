"""Segments as a keeper writes them."""

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from kt_ledger.layout import RunLayout, StateLayout


def write_segment(files: RunLayout, stream: str, number: int, *portions: tuple[int, bytes]) -> None:
    """Append portions (time, bytes) to a segment and its index."""
    with files.segment(stream, number).open("ab") as log, files.index(stream, number).open("ab") as index:
        for at_ns, data in portions:
            index.write(struct.pack("<QQ", log.tell(), at_ns))
            log.write(data)


@pytest.fixture
def write() -> Callable[..., None]:
    return write_segment


@pytest.fixture
def files(tmp_path: Path) -> RunLayout:
    return RunLayout(tmp_path)


@pytest.fixture
def state(tmp_path: Path) -> StateLayout:
    return StateLayout(tmp_path)


@pytest.fixture
def new_run(state: StateLayout) -> Callable[[int, str], RunLayout]:
    """Make the folder of one Run of the instance "i"."""

    def make(number: int, run_id: str) -> RunLayout:
        run = state.run(run_id)
        run.root.mkdir(parents=True)
        owner = {"instance_id": "i", "name": "bot", "number": number}
        (run.root / "owner.json").write_text(json.dumps(owner))
        return run

    return make

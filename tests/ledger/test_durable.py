import os
import stat
from pathlib import Path

import pytest

from kt_ledger.durable import durable, replace_file


def test_a_file_is_replaced_whole_and_private(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")

    replace_file(target, b"new")

    assert (b"new", 0o600) == (target.read_bytes(), stat.S_IMODE(target.stat().st_mode))
    assert ["target"] == [one.name for one in tmp_path.iterdir()]


def test_a_replacement_that_cannot_be_written_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "in the way").touch()

    with pytest.raises(OSError):
        replace_file(target, b"new")

    assert ["target"] == [one.name for one in tmp_path.iterdir()]


def test_bytes_that_cannot_be_synced_are_an_error(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        durable(file.fileno())
    reader, writer = os.pipe()

    with pytest.raises(OSError):
        durable(writer)

    os.close(reader)
    os.close(writer)

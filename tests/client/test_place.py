from pathlib import Path

import pytest

from kt_client import place
from kt_client.errors import KtError


def test_a_chosen_place_needs_no_environment(tmp_path: Path) -> None:
    assert tmp_path / "here" == place.layout(tmp_path / "here").root


def test_a_relative_choice_is_taken_from_the_working_directory() -> None:
    assert Path.cwd() / "state" == place.layout("state").root


def test_a_place_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(KtError, match="no directory") as caught:
        place.layout(tmp_path / "file")

    assert 1 == caught.value.exit_code


def test_a_place_without_ledger_and_socket_was_never_used(tmp_path: Path) -> None:
    files = place.layout(tmp_path)
    unused = place.is_unused(files)
    files.database.touch()

    assert (True, False) == (unused, place.is_unused(files))

from pathlib import Path

import pytest

from kt_manifest.contract import shipped, shipped_folder


def test_the_kinds_are_the_names_of_the_folders() -> None:
    assert [each.adapter.kind for each in shipped.found()] == shipped_folder.kinds()


def test_an_installation_without_adapters_is_told(tmp_path: Path) -> None:
    with pytest.raises(shipped_folder.AdaptersMissing, match="install ktmeter again"):
        shipped_folder.kinds(tmp_path / "a" / "b")

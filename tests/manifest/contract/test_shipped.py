import shutil
from pathlib import Path

import pytest

from kt_manifest.contract import manifest, shipped

HERE = Path(shipped.__file__).resolve().parents[1]


def test_each_adapter_is_found_by_its_kind() -> None:
    there = shipped.found()

    assert {"example-shim", "openai-compatible", "self-reporting"} <= {each.adapter.kind for each in there}
    assert sorted(each.adapter.kind for each in there) == [each.adapter.kind for each in there]
    for each in there:
        assert each == shipped.named(each.adapter.kind)
        assert each.adapter == manifest.load(each.folder)


def test_the_wheels_own_folder_comes_before_the_checkouts(tmp_path: Path) -> None:
    room = tmp_path / "manifest" / "kt_manifest"
    shutil.copytree(shipped.folder(), tmp_path / "adapters")

    assert tmp_path / "adapters" == shipped.folder(room)

    shutil.copytree(shipped.folder(), room / "adapters")

    assert room / "adapters" == shipped.folder(room)
    assert {room / "adapters"} == {each.folder.parent for each in shipped.found(room)}


def test_an_unknown_kind_is_told_the_nearest() -> None:
    with pytest.raises(shipped.AdapterUnknown) as refused:
        shipped.named("openai-compatibel")

    assert 2 == refused.value.exit_code
    assert "did you mean openai-compatible?" in str(refused.value)
    assert "self-reporting" in refused.value.wanted


def test_a_lost_folder_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(shipped.AdaptersMissing) as refused:
        shipped.found(tmp_path / "a" / "b")

    assert all(str(place) in str(refused.value) for place in shipped.places(tmp_path / "a" / "b"))


def test_a_shipped_adapter_that_is_broken_is_named(tmp_path: Path) -> None:
    (tmp_path / "adapters" / "bad").mkdir(parents=True)
    (tmp_path / "adapters" / "bad" / "adapter.toml").write_text('contract_version = "2.0.0"\n')

    with pytest.raises(manifest.ManifestInvalid, match=r"bad/adapter.toml: missing \[adapter\]"):
        shipped.found(tmp_path)

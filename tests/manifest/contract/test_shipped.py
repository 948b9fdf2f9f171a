import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kt_manifest.configuration import settings
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


def test_what_an_introduction_says_to_set_can_be_set() -> None:
    for each in shipped.found():
        said = [
            line.split("kt agent config set NAME ", 1)[1]
            for line in each.introduction
            if "config set" in line
        ]
        given = dict(shlex.split(line, comments=True) for line in said)

        for key, value in given.items():
            settings.check(key, value.replace("URL-OF-THE-PROVIDER", "https://example.com"))
        if each.adapter.maps("agent.PROMPT"):
            assert {"agent.PROMPT", "restart.policy", "metering.upstream_base_url"} <= given.keys()


def test_a_template_starts_a_program_that_does_not_come_with_it_and_says_so() -> None:
    templates = {each.adapter.kind for each in shipped.found() if each.is_template}

    assert {"example-shim", "openai-compatible", "self-reporting"} == templates
    for each in shipped.found():
        told = shipped.remedy(each.adapter)
        assert (told is not None) == each.is_template
        assert told is None or f"{each.adapter.kind} that comes with kt is a template" in told


def test_what_was_made_of_a_template_is_none(tmp_path: Path) -> None:
    ours = shipped.named("self-reporting").adapter
    assert ours.start is not None

    assert shipped.remedy(replace(ours, start=replace(ours.start, exec="mine"))) is None
    assert shipped.remedy(ours, tmp_path / "a" / "b") is None
    assert () == shipped.Shipped(ours, tmp_path).introduction


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

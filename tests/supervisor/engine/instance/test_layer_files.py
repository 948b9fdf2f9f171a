import os
from pathlib import Path

import pytest

from kt_ledger.clock import ManualClock
from kt_manifest.configuration import config_file
from kt_supervisor.engine.instance import layer_files
from kt_supervisor.engine.instance.layer_files import Kept, read_layer

LATER_NS = 4_000_000_000_000_000_000
"""A moment at which no file of a test is young."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def test_a_file_is_read_once_until_it_is_another(path: Path) -> None:
    made: list[Path] = []
    kept = Kept(ManualClock(wall_ns=LATER_NS), lambda file: made.append(file) or read_layer(file))
    path.write_text('model = "a"\n')

    first, again = kept.read(path), kept.read(path)
    path.write_text('model = "b"\n')
    changed = kept.read(path)
    config_file.set(path, "model", "c")
    replaced = kept.read(path)

    assert first is again
    assert [{"model": name} for name in "abc"] == [dict(one.values) for one in (first, changed, replaced)]
    assert 3 == len(made)


def test_a_file_of_the_same_size_and_time_in_another_place_is_another(path: Path) -> None:
    kept = Kept(ManualClock(wall_ns=LATER_NS), read_layer)
    path.write_text('model = "a"\n')
    facts = path.stat()
    first = kept.read(path)

    other = path.with_name("other")
    other.write_text('model = "b"\n')
    os.utime(other, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    other.rename(path)

    assert (facts.st_mtime_ns, facts.st_size) == (path.stat().st_mtime_ns, path.stat().st_size)
    assert ({"model": "a"}, {"model": "b"}) == (first.values, kept.read(path).values)


def test_a_young_file_is_read_again_since_a_change_could_hide_in_the_same_tick(path: Path) -> None:
    path.write_text('model = "a"\n')
    clock = ManualClock(wall_ns=path.stat().st_mtime_ns)
    kept = Kept(clock, read_layer)

    young, still_young = kept.read(path), kept.read(path)
    clock.advance(layer_files.YOUNG_NS / 1e9)
    old, kept_now = kept.read(path), kept.read(path)

    assert young is not still_young
    assert old is kept_now


def test_a_file_that_is_not_there_is_an_empty_layer_until_it_comes(path: Path) -> None:
    kept = Kept(ManualClock(wall_ns=LATER_NS), read_layer)

    absent, still = kept.read(path), kept.read(path)
    path.write_text('model = "a"\n')
    there = kept.read(path)
    path.unlink()

    assert absent is still
    assert ({}, {"model": "a"}, {}) == (absent.values, there.values, kept.read(path).values)


@pytest.mark.parametrize("how", ["malformed", "a folder", "a FIFO"])
def test_what_cannot_be_read_is_kept_as_the_reason(path: Path, how: str) -> None:
    if how == "malformed":
        path.write_text("model =\n")
    elif how == "a folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    kept = Kept(ManualClock(wall_ns=LATER_NS), read_layer)

    found = kept.read(path)

    assert {} == found.values
    assert isinstance(found.error, config_file.MalformedLayer | config_file.LayerUnavailable)
    assert found is kept.read(path)

"""The home folder of the kit: what is written there is named, whatever it is."""

from pathlib import Path

import pytest

from kt_conformance.outside import Outside, described, unused


def test_what_is_written_is_named_whatever_it_is(tmp_path: Path) -> None:
    with Outside(tmp_path) as outside:
        assert [] == outside.written()
        (outside.home / "a" / "b").mkdir(parents=True)
        (outside.home / "a" / "file").write_text("")
        (outside.home / "link").symlink_to("/")
        (outside.home / "tmp" / "x").write_text("")

        assert ["a/b", "a/file", "link", "tmp/x"] == outside.written()
        assert ["link", "tmp/x"] == outside.written(allowed=["a"])
        assert ["a/b", "a/file", "link"] == outside.written(allowed=["tmp/x"])

    assert [] == list(tmp_path.iterdir())


def test_nobody_is_led_out_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/elsewhere")
    monkeypatch.setenv("KEPT", "1")

    with Outside(tmp_path) as outside:
        caller = outside.caller()

    home = tmp_path / "home"
    assert (str(home), str(home / "tmp"), "1") == (caller["HOME"], caller["TMPDIR"], caller["KEPT"])
    assert not any(name.startswith("XDG_") for name in caller)


def test_of_many_paths_the_first_are_told() -> None:
    assert "$HOME/a, $TMPDIR/b" == described(["a", "tmp/b"])
    assert "$HOME/0, $HOME/1, $HOME/2, $HOME/3, $HOME/4 and 2 more" == described([str(n) for n in range(7)])


def test_what_kt_rendered_is_not_the_agents(tmp_path: Path) -> None:
    (tmp_path / "own" / "deep").mkdir(parents=True)
    (tmp_path / "own" / "a.json").write_text("{}")

    assert unused(tmp_path / "own", tmp_path, frozenset({"own/a.json"}))
    assert not unused(tmp_path / "own", tmp_path, frozenset())

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.manifest.launch.native import documents

from kt_manifest import replacing
from kt_manifest.home_names import MERGED
from kt_manifest.launch import placing
from kt_manifest.launch.agent_home import RenderedFile, RenderRefused
from kt_manifest.launch.merge_journal import JournalUnreadable
from kt_manifest.launch.native.document import FORMATS, Occupied, Uneditable
from kt_manifest.launch.native_file import MergedFile
from kt_manifest.launch.placing import MergeRefused, put_back, write_files


def _merge(
    home: Path, *edits: tuple[tuple[str, ...], Any], path: str = "c/a.json", format_: str = "json"
) -> None:
    write_files(home, (), (MergedFile(path, format_, edits),))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "c").mkdir()
    return tmp_path / "c" / "a.json"


@pytest.mark.parametrize("format_", FORMATS)
def test_merge_then_put_back_gives_the_original_bytes(
    format_: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Over several starts with other values each, and with what an operator has changed in between left alone."""
    home = tmp_path_factory.mktemp("home")
    file = home / "f"

    @settings(max_examples=40, deadline=None)
    @given(documents.originals(format_), st.lists(documents.edits(format_), max_size=3))
    def check(original: str | None, starts: list[list[tuple[tuple[str, ...], Any]]]) -> None:
        file.unlink(missing_ok=True)
        if original is not None:
            file.write_bytes(original.encode())
        for edits in starts:
            try:
                _merge(home, *edits, path="f", format_=format_)
            except MergeRefused:
                break

        assert () == put_back(home)
        assert (None if original is None else original.encode()) == (
            file.read_bytes() if file.exists() else None
        )
        assert not (home / MERGED).exists()

    check()


def test_comments_order_and_permissions_stay_and_others_cannot_read_what_was_put_in(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("# mine\nb = 1 # why\n[t]\nz = 0\n")
    file.chmod(0o644)

    _merge(tmp_path, (("t", "key"), "sk"), path="a.toml", format_="toml")

    assert '# mine\nb = 1 # why\n[t]\nz = 0\nkey = "sk"\n' == file.read_text()
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    put_back(tmp_path)
    assert 0o644 == stat.S_IMODE(file.stat().st_mode)


def test_an_unset_setting_puts_its_key_back_and_leaves_the_others(tmp_path: Path, file: Path) -> None:
    file.write_text('{"model": "old", "x": 1}')
    _merge(tmp_path, (("model",), "new"), (("n",), 5))

    _merge(tmp_path, (("n",), 6))
    assert '{"model": "old", "x": 1, "n": 6}' == file.read_text()
    _merge(tmp_path)

    assert '{"model": "old", "x": 1}' == file.read_text()
    assert not (tmp_path / MERGED).exists()


def test_what_others_changed_since_stays(tmp_path: Path, file: Path) -> None:
    file.write_text('{"model": "old", "k": 1}')
    _merge(tmp_path, (("model",), "new"), (("n",), 5), (("k",), 2))
    file.write_text(file.read_text().replace('"k": 2', '"k": "theirs"').replace("}", ', "added": true}'))

    assert () == put_back(tmp_path)

    assert {"model": "old", "k": "theirs", "added": True} == json.loads(file.read_text())


def test_a_file_that_was_not_there_goes_again_and_one_that_others_removed_stays_away(tmp_path: Path) -> None:
    _merge(tmp_path, (("a", "b"), 1))
    assert {"a": {"b": 1}} == json.loads((tmp_path / "c/a.json").read_text())
    put_back(tmp_path)
    assert not (tmp_path / "c/a.json").exists()

    _merge(tmp_path, (("a",), 1))
    (tmp_path / "c/a.json").unlink()
    assert () == put_back(tmp_path)
    assert not (tmp_path / "c/a.json").exists()


def test_an_adapter_that_no_longer_names_a_file_leaves_nothing_in_it(tmp_path: Path, file: Path) -> None:
    file.write_text("{}")
    _merge(tmp_path, (("a",), 1))

    write_files(tmp_path, (RenderedFile("other.toml", "# Rendered by kt\n"),), ())

    assert "{}" == file.read_text()


def test_a_start_that_changes_nothing_writes_nothing(tmp_path: Path, file: Path) -> None:
    file.write_text("{}")
    _merge(tmp_path, (("a",), 1))
    before = [(path.stat().st_ino, path.stat().st_mtime_ns) for path in (file, tmp_path / MERGED)]

    _merge(tmp_path, (("a",), 1))

    assert before == [(path.stat().st_ino, path.stat().st_mtime_ns) for path in (file, tmp_path / MERGED)]


class Killed(BaseException):
    """What a kill between two writes looks like from inside."""


@pytest.fixture
def killing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Let so many durable replacements through, and die at the next."""
    left = [1_000_000]
    replace_at = replacing.replace_at

    def counted(folder: int, name: str, data: bytes, *, mode: int = 0o600) -> None:
        if left[0] == 0:
            raise Killed
        left[0] -= 1
        replace_at(folder, name, data, mode=mode)

    monkeypatch.setattr(replacing, "replace_at", counted)
    yield left


@pytest.mark.parametrize("original", [None, '{"a": "old", "x": 1.0}'])
@pytest.mark.parametrize("second", [(), ((("a",), 2),), ((("b",), 3), (("a",), "old"))])
@pytest.mark.parametrize("allowed", range(5))
def test_a_kill_between_journal_and_file_heals(
    tmp_path: Path, file: Path, killing: list[int], original: str | None, second: Any, allowed: int
) -> None:
    """Whatever was written before the end, the next start and the removal find the way back."""
    if original is not None:
        file.write_text(original)
    killing[0] = allowed
    try:
        _merge(tmp_path, (("a",), 1), (("n", "m"), True))
        _merge(tmp_path, *second)
    except Killed:
        pass
    killing[0] = 1_000_000

    _merge(tmp_path, (("a",), 4))
    assert 4 == json.loads(file.read_text())["a"]
    assert () == put_back(tmp_path)

    assert original == (file.read_text() if file.exists() else None)
    assert not (tmp_path / MERGED).exists()


@pytest.mark.parametrize("allowed", range(3))
def test_a_kill_on_the_way_out_heals(tmp_path: Path, file: Path, killing: list[int], allowed: int) -> None:
    file.write_text('{"a": "old"}')
    _merge(tmp_path, (("a",), 1))
    killing[0] = allowed
    try:
        put_back(tmp_path)
    except Killed:
        pass
    killing[0] = 1_000_000

    assert () == put_back(tmp_path)
    assert '{"a": "old"}' == file.read_text()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b'{\n"a": 1,\n', "got line 3: .*, wanted json that can be read; correct that line"),
        (b'{"a": \xff}', "line 1: a byte that is not UTF-8"),
        (b'{"t": 1}', 'got a value at "t", wanted nothing or a value there, under tables'),
        (b'{"t": {"x": {"y": 1}}}', 'got a table at "t.x"'),
    ],
)
def test_a_file_that_cannot_take_it_is_not_touched_and_neither_is_any_other(
    tmp_path: Path, file: Path, text: bytes, told: str
) -> None:
    file.write_bytes(text)
    other = MergedFile("b.json", "json", ((("a",), 1),))

    with pytest.raises(MergeRefused, match=told) as caught:
        write_files(
            tmp_path,
            (RenderedFile("w.toml", "x = 1\n"),),
            (other, MergedFile("c/a.json", "json", ((("t", "x"), 1),))),
        )

    assert text == file.read_bytes()
    assert ["c"] == [path.name for path in tmp_path.iterdir()]
    assert 1 == caught.value.exit_code


def test_a_spelling_that_is_not_edited_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: &x {k: 1}\nb: *x\n")

    with pytest.raises(MergeRefused, match="can edit without changing anything else; spell that"):
        _merge(tmp_path, (("b", "k"), 2), path="a.yaml", format_="yaml")


@pytest.mark.parametrize("what", ["link", "folder", "fifo", "parent"])
def test_nothing_leaves_the_home(tmp_path: Path, what: str) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    home.mkdir()
    outside.mkdir()
    (outside / "a.json").write_text("{}")
    if what == "parent":
        (home / "c").symlink_to(outside)
    else:
        (home / "c").mkdir()
        place = home / "c" / "a.json"
        {
            "link": lambda: place.symlink_to(outside / "a.json"),
            "folder": place.mkdir,
            "fifo": lambda: os.mkfifo(place),
        }[what]()

    with pytest.raises(RenderRefused):
        _merge(home, (("a",), 1))
    with pytest.raises(RenderRefused):
        _merge(home, (("a",), 1), path="../outside/a.json")
    with pytest.raises(RenderRefused):
        _merge(home, (("a",), 1), path=MERGED)

    assert "{}" == (outside / "a.json").read_text()


def test_a_link_put_in_the_way_later_is_told_at_removal(tmp_path: Path, file: Path) -> None:
    _merge(tmp_path, (("a",), 1))
    file.unlink()
    file.symlink_to("/etc/hostname")

    [told] = put_back(tmp_path)

    assert "c/a.json keeps what kt has put into it: a symbolic link" in told


def test_a_file_that_became_unreadable_is_told_at_removal(tmp_path: Path, file: Path) -> None:
    _merge(tmp_path, (("a",), 1))
    file.write_text("{broken")

    [told] = put_back(tmp_path)

    assert "c/a.json keeps what kt has put into it: line 1" in told
    assert "{broken" == file.read_text()


def test_a_damaged_journal_refuses_the_start_and_is_told_at_removal(tmp_path: Path) -> None:
    (tmp_path / MERGED).write_text('{"schema_version": 2}')

    with pytest.raises(JournalUnreadable, match="got version 2, wanted a journal of version 1; move it away"):
        _merge(tmp_path, (("a",), 1))

    assert ["version 2" in told for told in put_back(tmp_path)] == [True]


def test_a_home_that_is_not_there_has_nothing_to_put_back(tmp_path: Path) -> None:
    assert () == put_back(tmp_path / "none")


def test_a_file_without_comments_that_is_written_whole_is_known_again_and_removed(tmp_path: Path) -> None:
    def start(content: str) -> None:
        write_files(tmp_path, (RenderedFile("w.json", content, marked=False),))

    start('{"a": 1}\n')
    start('{"a": 2}\n')
    assert '{"a": 2}\n' == (tmp_path / "w.json").read_text()
    start("")
    assert [] == list(tmp_path.iterdir())

    (tmp_path / "w.json").write_text("theirs")
    start("")
    assert "theirs" == (tmp_path / "w.json").read_text()


def test_the_journal_shows_no_value_of_ours(tmp_path: Path, file: Path) -> None:
    file.write_text("{}")

    _merge(tmp_path, (("key",), "sk-canary"))

    assert "sk-canary" not in (tmp_path / MERGED).read_text()
    assert 0o600 == stat.S_IMODE((tmp_path / MERGED).stat().st_mode)


def test_the_refusals_of_the_formats_are_all_translated() -> None:
    for error in (Occupied(("a",), "a value"), Uneditable("x")):
        assert isinstance(placing._refused("p", "json", error), MergeRefused)


def test_what_a_start_would_change_in_files_can_be_asked_without_changing_them(
    tmp_path: Path, file: Path
) -> None:
    file.write_text('{"mine": 1}')
    ours = MergedFile("c/a.json", "json", ((("k",), "v"),))
    before = file.read_bytes()

    assert ("c/a.json",) == placing.merges_pending(tmp_path, [ours])
    assert before == file.read_bytes()
    assert [file] == [path for path in tmp_path.rglob("*") if path.is_file()]

    write_files(tmp_path, (), (ours,))
    assert () == placing.merges_pending(tmp_path, [ours])
    assert ("c/a.json",) == placing.merges_pending(tmp_path, [])


@pytest.mark.parametrize("damage", ["no json", '{"k": {"a": 1}}'])
def test_what_a_start_would_refuse_counts_as_a_change(tmp_path: Path, file: Path, damage: str) -> None:
    file.write_text(damage)
    ours = MergedFile("c/a.json", "json", ((("k", "b", "c"), "v"), (("k", "a", "d"), "v")))

    assert ("c/a.json",) == placing.merges_pending(tmp_path, [ours])
    assert ("c/a.json",) == placing.merges_pending(tmp_path / "away", [ours])

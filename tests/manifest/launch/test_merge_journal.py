import json
import os
from pathlib import Path

import pytest

from kt_manifest.home_names import MERGED
from kt_manifest.launch import merge_journal
from kt_manifest.launch.merge_journal import Journal, JournalUnreadable, Merged

ENTRY = Merged("json", "{}", 0o640, ("a", "b"), {("x", "y.z"): ("d",), ("é",): ("d", "e")})
JOURNAL = Journal({"c/a.json": ENTRY, "n": Merged("env", None, 0o600, (), {})}, {"w.json": ("s",)})


def _root(home: Path) -> int:
    return os.open(home, os.O_RDONLY | os.O_DIRECTORY)


def test_what_is_saved_is_read_and_an_empty_one_is_no_file(tmp_path: Path) -> None:
    root = _root(tmp_path)
    try:
        assert Journal() == merge_journal.read(root)
        merge_journal.save(root, JOURNAL)
        assert JOURNAL == merge_journal.read(root)
        merge_journal.save(root, Journal())
        assert not (tmp_path / MERGED).exists()
        merge_journal.save(root, Journal())
    finally:
        os.close(root)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema_version": 1, "merged": [], "written": {}}',
        '{"schema_version": 1, "merged": {"p": {"format": "xml"}}, "written": {}}',
        '{"schema_version": 1, "merged": {}, "written": {"p": "s"}}',
        "[" * 100_000,
        *(
            json.dumps({"schema_version": 1, "merged": {"p": {**good, **bad}}, "written": {}})
            for good in [{"format": "json", "original": "", "mode": 384, "states": [], "ours": []}]
            for bad in [
                {"format": "ini"},
                {"original": 1},
                {"mode": "x"},
                {"states": [1]},
                {"ours": [{"path": "a"}]},
            ]
        ),
    ],
)
def test_a_damaged_one_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / MERGED).write_text(text)
    root = _root(tmp_path)

    try:
        with pytest.raises(JournalUnreadable, match="move it away") as caught:
            merge_journal.read(root)
    finally:
        os.close(root)
    assert 1 == caught.value.exit_code


def test_something_else_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / MERGED).symlink_to("elsewhere")
    root = _root(tmp_path)

    try:
        with pytest.raises(JournalUnreadable, match="a symbolic link"):
            merge_journal.read(root)
    finally:
        os.close(root)


def test_both_states_have_the_same_original_and_other_texts_go_by_their_keys() -> None:
    original, before, after = '{"a": 0}', '{"a": 0, "b": 1}', '{"a": 2}'
    digests = {("a",): (merge_journal.document.digest(2),), ("b",): (merge_journal.document.digest(1),)}
    entry = Merged("json", original, 0o600, tuple(map(merge_journal.digest, (before, after))), digests)

    assert [original] * 2 == [merge_journal.base(entry, text)[0] for text in (before, after)]
    assert '{"a": 0, "c": 3}' == merge_journal.base(entry, '{"a": 2, "b": 1, "c": 3}')[0]
    assert '{"a": 9}' == merge_journal.base(entry, '{"a": 9}')[0]
    assert (None, {}) == merge_journal.base(entry, None)
    assert ("x", {}) == merge_journal.base(None, "x")


def test_an_entry_that_says_all_already_is_kept() -> None:
    fresh = Merged("json", "{}", 0o640, ("b",), {("x", "y.z"): ("d",), ("é",): ("e",)})
    other = Merged("json", "{ }", 0o640, ("b",), fresh.ours)
    fewer = Merged("json", "{}", 0o640, ("b",), {("é",): ("e",)})

    assert merge_journal.refreshed(ENTRY, fresh) is ENTRY
    assert [other, fewer] == [merge_journal.refreshed(ENTRY, entry) for entry in (other, fewer)]
    assert merge_journal.refreshed(None, fresh) is fresh

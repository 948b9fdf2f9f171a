import contextlib
import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.manifest.launch.native import documents

from kt_manifest.launch.native import document, tree
from kt_manifest.launch.native.document import FORMATS, Occupied, Uneditable, Unreadable

OURS = (Unreadable, Uneditable, Occupied)


@pytest.mark.parametrize("format_", FORMATS)
def test_what_is_put_in_is_read_back_and_the_rest_stays(format_: str) -> None:
    @settings(max_examples=60, deadline=None)
    @given(documents.originals(format_), documents.edits(format_))
    def check(original: str | None, edits: list[document.Edit]) -> None:
        before = {} if original is None else FORMATS[format_].read(original)
        try:
            merged = document.merge(format_, original, edits)
        except (Occupied, Uneditable):
            return

        wanted = before
        for path, value in edits:
            wanted = tree.put(wanted, path, value)
        assert tree.same(wanted, FORMATS[format_].read(merged))
        assert _comments(original or "") <= _comments(merged)

    check()


@pytest.mark.parametrize("format_", FORMATS)
def test_what_was_put_in_is_put_back(format_: str) -> None:
    """Without the journal's copy of the whole: by the keys alone, as in a file that others have changed."""

    @settings(max_examples=60, deadline=None)
    @given(documents.originals(format_), documents.edits(format_))
    def check(original: str | None, edits: list[document.Edit]) -> None:
        try:
            merged = document.merge(format_, original, edits)
            back = document.put_back(format_, merged, original, [path for path, _ in edits])
        except (Occupied, Uneditable):
            return

        if original is None:
            assert back is None or FORMATS[format_].read(back) == {}
        else:
            assert back is not None
            assert tree.same(FORMATS[format_].read(original), FORMATS[format_].read(back))

    check()


@pytest.mark.parametrize("format_", FORMATS)
def test_few_layouts_are_refused(format_: str) -> None:
    """A refusal is always allowed, so it is counted: of plain files nearly none may be."""
    refused = 0

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(documents.originals(format_), documents.edits(format_))
    def check(original: str | None, edits: list[document.Edit]) -> None:
        nonlocal refused
        try:
            merged = document.merge(format_, original, edits)
            document.put_back(format_, merged, original, [path for path, _ in edits])
        except Occupied:
            pass
        except Uneditable:
            refused += 1

    check()
    assert refused <= 3


@pytest.mark.parametrize("format_", FORMATS)
def test_a_byte_order_mark_stays(format_: str) -> None:
    text = {"json": "{}", "env": "A=1\n", "toml": "a = 1\n", "yaml": "a: 1\n"}[format_]

    merged = document.merge(format_, document.BOM + text, [(("new",), "x")])

    assert merged.startswith(document.BOM)
    assert document.BOM + text == document.put_back(format_, merged, document.BOM + text, [("new",)])


@pytest.mark.parametrize("format_", FORMATS)
def test_a_value_of_a_megabyte_goes_in_and_comes_out(format_: str) -> None:
    _large(format_, "x y" * 350_000)


@pytest.mark.long
@pytest.mark.parametrize("format_", FORMATS)
def test_a_megabyte_that_is_all_escapes_goes_in_and_comes_out(format_: str) -> None:
    _large(format_, "é'\"\\$ " * 180_000)


def _large(format_: str, large: str) -> None:
    text = {"json": "{}", "env": "A=1\n", "toml": "a = 1\n", "yaml": "a: 1\n"}[format_]

    merged = document.merge(format_, text, [(("new",), large)])

    assert {("new",): large} == document.values(format_, merged, [("new",)])
    assert text == document.put_back(format_, merged, text, [("new",)])


@pytest.mark.parametrize("format_", ["toml", "json", "yaml"])
def test_a_scalar_where_a_table_is_needed_is_refused_and_so_is_the_reverse(format_: str) -> None:
    text = FORMATS[format_].write({"a": 1, "t": {"x": 1}})

    with pytest.raises(Occupied) as below:
        document.merge(format_, text, [(("a", "b"), "x")])
    with pytest.raises(Occupied) as instead:
        document.merge(format_, text, [(("t",), "x")])

    assert (("a",), "a value") == (below.value.path, below.value.got)
    assert (("t",), "a table") == (instead.value.path, instead.value.got)


def test_an_empty_table_of_ours_is_there_where_a_table_is() -> None:
    assert '{"t": {"x": 1}}' == document.merge("json", '{"t": {"x": 1}}', [(("t",), {})])


def test_what_others_put_into_a_table_that_we_made_stays() -> None:
    merged = document.merge("json", "{}", [(("a", "b"), 1)])
    theirs = merged.replace('"b": 1', '"b": 1, "c": 2')

    assert '{"a": {"c": 2}}' == document.put_back("json", theirs, "{}", [("a", "b")])


def test_a_file_of_ours_goes_only_when_nothing_of_others_is_in_it() -> None:
    merged = document.merge("yaml", None, [(("a",), "x")])

    assert document.put_back("yaml", merged, None, [("a",)]) is None
    assert "# mine\n" == document.put_back("yaml", merged + "# mine\n", None, [("a",)])


def test_a_digest_tells_values_apart_and_types_too() -> None:
    different = ["1", 1, 1.5, True, None, [1], {"a": 1}, {1: 2, "b": 3}]

    assert len(different) == len({document.digest(value) for value in different})
    assert document.digest({"a": 1, "b": 2}) == document.digest({"b": 2, "a": 1})


@pytest.mark.parametrize("format_", FORMATS)
def test_no_text_makes_more_than_a_named_refusal(format_: str) -> None:
    _fuzz(format_, rounds=150)


@pytest.mark.long
@pytest.mark.parametrize("format_", FORMATS)
def test_no_text_makes_more_than_a_named_refusal_over_many(format_: str) -> None:
    _fuzz(format_, rounds=60_000)


def _fuzz(format_: str, *, rounds: int) -> None:
    seed = int(os.environ.get("KT_FUZZ_SEED") or random.randrange(2**32))
    print(f"KT_FUZZ_SEED={seed}")
    chance = random.Random(seed)
    seeds = {
        "json": '{"a": {"b": [1, "x"]}, "c": null}\n',
        "toml": '# c\na = 1\n[t.u]\nx = "y" # z\n[[l]]\nq = {i = 1}\n',
        "yaml": "# c\na: &x {b: [1, 'x']}\nc: |\n  t\nd: *x\n- e\n",
        "env": 'A=1\nexport B=\'x\' # c\nC="y\\"\nz"\n',
    }
    alphabet = "{}[]:,'\"#=&*!|>-?% \t\n\r\\abc019._\0\x85é😀\ufeff~`@"
    for _ in range(rounds):
        text = list(seeds[format_])
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(text) + 1)
            text[at : at + chance.randrange(3)] = chance.choices(alphabet, k=chance.randrange(4))
        spelled = "".join(text)
        edits = [
            (("a",) if format_ == "env" else chance.choice([("a",), ("t", "u", "x"), ("new", "b")]), "v")
        ]
        with contextlib.suppress(*OURS):
            merged = document.merge(format_, spelled, edits)
            document.put_back(format_, merged, spelled, [path for path, _ in edits])


def _comments(text: str) -> set[str]:
    return {mark for mark in ("# kept", "# between", "# deep", "# comment") if mark in text}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(FORMATS)), st.data())
def test_writing_is_deterministic(format_: str, data: st.DataObject) -> None:
    edits = data.draw(documents.edits(format_))

    assert document.merge(format_, None, edits) == document.merge(format_, None, edits)

import json
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kt_gateway.decode.members import Members

WANTED = frozenset({"usage", "model", 'a"b', "é"})
NAMES = st.sampled_from(["usage", "model", 'a"b', "é", "other", "", "usag", "usage "])
TRICKS = st.sampled_from(['{"usage":1}', "\\", '"', "]}"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | TRICKS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)
PAIRS = st.lists(st.tuples(NAMES, VALUES), max_size=8)


def spelled(pairs: list[tuple[str, object]], *, indent: int | None, ascii_only: bool) -> bytes:
    """Write an object that may hold a name twice, which json.dumps cannot."""
    gap = "" if indent is None else " \n"
    members = [
        f"{gap}{json.dumps(name, ensure_ascii=ascii_only)}{gap}:{gap}"
        f"{json.dumps(value, indent=indent, ensure_ascii=ascii_only)}{gap}"
        for name, value in pairs
    ]
    return (gap + "{" + ",".join(members) + gap + "}" + gap).encode()


@settings(max_examples=150)
@given(PAIRS, st.sampled_from([None, 1]), st.booleans(), st.integers(0, 2**32))
def test_the_wanted_members_are_what_json_says_they_are(
    pairs: list[tuple[str, object]], indent: int | None, ascii_only: bool, seed: int
) -> None:
    text = spelled(pairs, indent=indent, ascii_only=ascii_only)
    dice = random.Random(seed)
    members = Members(WANTED)

    at = 0
    while at < len(text):
        size = dice.choice((1, 2, 5, 50))
        members.feed(text[at : at + size])
        at += size

    # Names are matched as json.dumps writes them or decoded from escapes; raw UTF-8 spellings of "é" are not wanted.
    whole = json.loads(text)
    wanted = {name: whole[name] for name in WANTED if name in whole and (ascii_only or name.isascii())}
    assert wanted == {
        name: value for name, value in members.document().items() if ascii_only or name.isascii()
    }
    assert members.complete
    for name, (start, end) in members.spans.items():
        assert json.loads(text[start:end]) == whole[name]
    names = [name for name, _ in pairs]
    repeated = {name for name in wanted if names.count(name) > 1}
    assert repeated == {name for name in members.repeated if ascii_only or name.isascii()}


def test_an_escaped_name_is_the_same_name() -> None:
    members = Members(WANTED)

    members.feed(b'{"us\\u0061ge": {"prompt_tokens": 1}}')

    assert members.document() == {"usage": {"prompt_tokens": 1}}


def test_a_member_beyond_the_limit_is_named_not_kept() -> None:
    members = Members(WANTED, limit_bytes=100)

    members.feed(b'{"usage": "')
    for _ in range(100):
        members.feed(b"x" * 10)
    members.feed(b'", "model": "m"}')

    assert members.document() == {"model": "m"}
    assert {"usage"} == members.overlong


def test_anything_but_an_object_has_no_members() -> None:
    for text in (b"[1, 2]", b'"usage"', b"null", b"", b"  "):
        members = Members(WANTED)

        members.feed(text)

        assert members.document() == {}
        assert not members.complete


def test_a_cut_object_keeps_what_was_whole() -> None:
    members = Members(WANTED)

    members.feed(b'{"model": "m", "usage": {"prompt_tokens": 1')

    assert members.document() == {"model": "m"}
    assert not members.complete


@given(st.binary(max_size=300), st.integers(1, 9))
def test_no_bytes_make_it_fail(junk: bytes, size: int) -> None:
    members = Members(WANTED)

    for text in (b"{" + junk, b'{"usage":' + junk):
        for at in range(0, len(text), size):
            members.feed(text[at : at + size])
        members.document()


@given(
    st.dictionaries(st.sampled_from(["usage", "model", "x"]), st.integers() | st.text(max_size=4)),
    st.integers(1, 9),
)
def test_members_of_a_member_are_found_without_keeping_it(inner: dict[str, Any], size: int) -> None:
    document = {"type": "t", "response": {"output": ["x" * 100_000], **inner}, "z": 1}
    body = json.dumps(document).encode()
    members = Members(frozenset({"type"}), inside={"response": frozenset({"usage", "model"})}, limit_bytes=50)

    step = size * 10_000 + 1
    for at in range(0, len(body), step):
        members.feed(body[at : at + step])

    wanted = {name: value for name, value in inner.items() if name != "x"}
    assert members.document() == {"type": "t", "response": wanted}
    assert not members.is_overlong


def test_a_member_that_ought_to_have_members_and_has_none_is_left_out() -> None:
    members = Members(frozenset({"type"}), inside={"response": frozenset({"usage"})})

    members.feed(b'{"response":[1],"type":"t","type":"u"}')

    assert members.document() == {"type": "u"}
    assert members.is_repeated

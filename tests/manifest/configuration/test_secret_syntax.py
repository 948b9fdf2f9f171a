import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_manifest.configuration import secret_syntax as syntax
from kt_manifest.configuration.value_types import Value

VALUES = {"A": "one", "B": "two", "weird name!": "three"}


@pytest.mark.parametrize(
    ("value", "names", "shown", "clear"),
    [
        ("secret:A", ["A"], "secret:****", "one"),
        ("Bearer ${secret:A}", ["A"], "Bearer secret:****", "Bearer one"),
        (
            "${secret:A}${secret:B}/${secret:A}",
            ["A", "B", "A"],
            "secret:****" * 2 + "/secret:****",
            "onetwo/one",
        ),
        ("${secret:weird name!}", ["weird name!"], "secret:****", "three"),
        ("$${secret:A}", [], "$${secret:A}", "${secret:A}"),
        ("$${secret:A} ${secret:B}", ["B"], "$${secret:A} secret:****", "${secret:A} two"),
        ("$$${secret:A}", [], "$$${secret:A}", "$${secret:A}"),
        ("${secret:}", [], "${secret:}", "${secret:}"),
        ("${secret:A", [], "${secret:A", "${secret:A"),
        ("${model} $${x}", [], "${model} $${x}", "${model} $${x}"),
        ("secret:", [], "secret:", "secret:"),
        ("x secret:A", [], "x secret:A", "x secret:A"),
        (
            ["-k", "${secret:A}", "secret:A"],
            ["A"],
            ["-k", "secret:****", "secret:A"],
            ["-k", "one", "secret:A"],
        ),
    ],
)
def test_references_are_found_masked_and_resolved(
    value: Value, names: list[str], shown: Value, clear: Value
) -> None:
    assert names == syntax.names_in(value)
    assert bool(names) is syntax.refers(value)
    assert shown == syntax.mask(value)
    assert clear == syntax.expand(value, VALUES.__getitem__)


def test_a_whole_reference_is_only_that_whatever_its_name_looks_like() -> None:
    assert ["A${secret:B}"] == syntax.names_in("secret:A${secret:B}")
    assert "secret:****" == syntax.mask("secret:A${secret:B}")


def test_a_secret_that_looks_like_a_reference_is_none() -> None:
    assert "x ${secret:B} $${secret:" == syntax.expand("x ${secret:A}", lambda _: "${secret:B} $${secret:")


def test_names_of_many_values_are_told_once() -> None:
    assert {"A", "B"} == syntax.names(["secret:A", "${secret:B}${secret:A}", "plain", ["${secret:B}"]])


@pytest.mark.parametrize(
    ("value", "delivered", "found"),
    [
        ("secret:A", "clear", ["clear"]),
        ("Bearer ${secret:A}", "Bearer clear", ["clear"]),
        ("${secret:A}:${secret:B}", "user:pass:word", ["user", "pass:word"]),
        ("a.${secret:A}", "aXclear", []),
        ("$${secret:x}${secret:A}", "${secret:x}clear", ["clear"]),
        ("plain", "plain", []),
        (["${secret:A}"], "clear", []),
    ],
)
def test_what_an_agent_was_given_tells_what_the_secret_was(
    value: Value, delivered: str, found: list[str]
) -> None:
    assert found == syntax.captured(value, delivered)


@pytest.mark.parametrize("name", ["", "a=b", "a b", "a\n", "a}", "{", "a\0"])
def test_some_names_cannot_be_given(name: str) -> None:
    assert syntax.fault_in_name(name)
    assert syntax.fault_in_name("OPENAI_API_KEY") is None


@given(st.text(alphabet="${}secrt:AB ", max_size=60), st.text(min_size=8, max_size=20))
def test_nothing_of_a_name_or_a_value_is_in_the_mask_and_an_unresolved_text_stays(
    text: str, secret: str
) -> None:
    names = syntax.names_in(text)
    clear = syntax.expand(text, lambda _: secret)

    assert len(names) <= clear.count(secret)
    if not names and "$${secret:" not in text:
        assert text == clear == syntax.mask(text)
    assert not syntax.names_in(syntax.mask(text)) or syntax.is_reference(syntax.mask(text))

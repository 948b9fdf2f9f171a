import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kt_manifest.launch import template
from kt_manifest.launch.native.tree import MISSING
from kt_manifest.launch.template import TemplateInvalid, TwoOfOneName, Unset


class Values:
    """What keys stand for here."""

    def __init__(self, **values: Any) -> None:
        self._values = values

    def text(self, key: str) -> str | None:
        value = self._values.get(key.removeprefix("agent."))
        return None if value is None else str(value)

    def typed(self, key: str) -> Any:
        return self._values.get(key.removeprefix("agent."), MISSING)


def _filled(format_: str, text: str, **values: Any) -> Any:
    return template.fill(format_, template.read(format_, text), Values(**values))


@settings(max_examples=150, deadline=None)
@given(st.text(), st.text())
def test_no_value_leaves_its_place_in_a_json_template(one: str, two: str) -> None:
    filled = _filled("json", '{"a": "x ${agent.A}", "l": ["${agent.B}"], "k": {"n": true}}', A=one, B=two)

    assert {"a": f"x {one}", "l": [two], "k": {"n": True}} == json.loads(json.dumps(filled))


def test_a_leaf_that_is_one_reference_takes_the_type() -> None:
    assert {"n": 5, "t": "n=5", "b": True} == _filled(
        "json", '{"n": "${agent.N}", "t": "n=${agent.N}", "b": "${agent.B}"}', N=5, B=True
    )


def test_a_leaf_without_a_value_is_left_out_and_so_is_a_member_by_its_name() -> None:
    text = '{"a": "${agent.A}", "l": ["x", "${agent.A}"], "t": {"${agent.A}": 1, "z": 0}, "e": {"q": "${agent.A}"}}'

    assert {"l": ["x"], "t": {"z": 0}, "e": {}} == _filled("json", text)


def test_a_name_takes_a_reference_too() -> None:
    assert {"models": {"gpt": {"name": "gpt"}}} == _filled(
        "json", '{"models": {"${model}": {"name": "${model}"}}}', model="gpt"
    )


@pytest.mark.parametrize(
    ("format_", "text"),
    [
        ("json", '{"a": "kt/${model}"}'),
        ("json", '{"x ${model}": 1}'),
        ("text", "m=${model}"),
        ("env", "A='x ${model}'"),
    ],
)
def test_a_part_of_a_text_needs_its_value(format_: str, text: str) -> None:
    with pytest.raises(Unset) as caught:
        _filled(format_, text)

    assert "model" == caught.value.key


def test_two_members_cannot_get_one_name() -> None:
    with pytest.raises(TwoOfOneName):
        _filled("json", '{"${model}": 1, "gpt": 2}', model="gpt")


@pytest.mark.parametrize(
    ("format_", "text", "filled"),
    [
        ("toml", 'a = "${model}"\n[t]\nn = "${agent.N}"\nd = 2020-01-01\n', {"a": "m", "t": {"n": 5}}),
        ("yaml", "a: ${model}\nt:\n  n: ${agent.N}\n", {"a": "m", "t": {"n": 5}}),
        ("env", "A=${model}\nN=${agent.N}\nB='$${x}'\n", {"A": "m", "N": "5", "B": "${x}"}),
        ("text", "--model ${model} $${x}", "--model m ${x}"),
        ("text", "${model}", "m"),
    ],
)
def test_every_format_is_filled(format_: str, text: str, filled: Any) -> None:
    found = _filled(format_, text, model="m", N=5)
    if format_ == "toml":
        del found["t"]["d"]

    assert filled == found


def test_a_text_that_is_one_reference_comes_to_nothing_without_a_value() -> None:
    assert _filled("text", "${model}") is MISSING


def test_the_keys_are_told_once_and_in_order() -> None:
    tree = template.read("json", '{"${model}": "${agent.B} ${model}", "x": ["${agent.A}"]}')

    assert ["model", "agent.B", "agent.A"] == template.keys(tree)


@pytest.mark.parametrize(
    ("format_", "text", "reason"),
    [
        ("json", "{", "line 1: Expecting property name"),
        ("json", "[]", "something else than an object"),
        ("json", '{"a": "${modle}"}', "did you mean model"),
        ("json", '{"a": "${model"}', "not closed; \\$\\$\\{ writes one itself"),
        ("json", '{"a": "\\ud800"}', "a lone surrogate"),
        ("json", '{"a": 1e999}', "infinite"),
        ("toml", "a = inf", "infinite"),
        ("yaml", "1: x", "a name that is no text"),
        ("yaml", "a: [2020-01-01]", "a date"),
        ("yaml", "a: !!binary aGk=", "neither text"),
        ("env", "nothing", "NAME=value"),
        ("text", "${secret:X}", "no setting"),
    ],
)
def test_what_is_no_template_says_why(format_: str, text: str, reason: str) -> None:
    with pytest.raises(TemplateInvalid, match=reason):
        template.read(format_, text)

import pytest

from kt_manifest.launch import typed_value
from kt_manifest.launch.typed_value import Unfit


@pytest.mark.parametrize(
    ("type_", "value", "converted"),
    [
        (None, "x", "x"),
        (None, ["x"], ["x"]),
        ("string", ["x", "y z"], "x 'y z'"),
        ("integer", "0", 0),
        ("integer", "-9223372036854775808", -(2**63)),
        ("number", "12", 12),
        ("number", "-0.5e-3", -0.0005),
        ("boolean", "true", True),
        ("boolean", "false", False),
        ("array", "a 'b c'", ["a", "b c"]),
        ("array", ["a"], ["a"]),
        ("array", "", []),
        ("json", '{"a": [1, null]}', {"a": [1, None]}),
        ("json", ["a"], ["a"]),
        ("json", '"x"', "x"),
    ],
)
def test_a_text_becomes_what_its_type_says(
    type_: str | None, value: str | list[str], converted: object
) -> None:
    found = typed_value.convert(type_, value)

    assert (type(converted), converted) == (type(found), found)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        *[
            ("integer", text)
            for text in ("", "1.0", "+1", "01", " 1", "1_0", "٣", "9223372036854775808", "x")
        ],
        ("integer", ["1"]),
        *[("number", text) for text in ("", "1.", ".5", "nan", "inf", "1e999", "0x1", "1" * 65, "1,5")],
        *[("boolean", text) for text in ("True", "yes", "1", "")],
        ("boolean", ["true"]),
        ("array", "it's"),
        *[
            ("json", text)
            for text in ("", "{", "nan", "{'a': 1}", '{"a":1,"a":2}', '"\\ud800"', "[" * 100_000)
        ],
    ],
)
def test_what_does_not_fit_is_refused(type_: str, value: str | list[str]) -> None:
    with pytest.raises(Unfit):
        typed_value.convert(type_, value)


def test_every_type_of_the_contract_is_known() -> None:
    from kt_manifest.contract.snapshot import TYPES

    assert set(TYPES) == set(typed_value.WANTED)
    for type_ in TYPES:
        typed_value.convert(
            type_, {"integer": "1", "number": "1", "boolean": "true", "json": "1"}.get(type_, "x")
        )

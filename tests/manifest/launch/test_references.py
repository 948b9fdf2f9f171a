import pytest

from kt_manifest.launch import references
from kt_manifest.launch.references import Malformed, Reference


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("plain $x {y} $", ["plain $x {y} $"]),
        ("${model}", [Reference("model")]),
        ("a${model}b${agent.X}", ["a", Reference("model"), "b", Reference("agent.X")]),
        ("$${model}", ["${", "model}"]),
        ("$$${model}", ["$", "${", "model}"]),
        ("${}", [Reference("")]),
        ("x ${secret:", ["x ", "${", "secret:"]),
        ("${secret:A}", [Reference("secret:A")]),
    ],
)
def test_a_text_is_cut_at_its_references(text: str, parts: list[object]) -> None:
    assert parts == references.parts(text)


@pytest.mark.parametrize("text", ["${", "a ${model", "${a{b}}", "${a\nb}", "${" + "x" * 201 + "}"])
def test_what_begins_a_reference_and_is_none_is_refused(text: str) -> None:
    with pytest.raises(Malformed, match="that is not closed"):
        references.parts(text)


def test_a_long_text_takes_linear_time() -> None:
    assert [] == references.keys("$" * 1_000_000 + "$${" * 100_000)


@pytest.mark.parametrize("key", ["model", "metering.base_url", "agent.ANY", "agent.a.b"])
def test_settings_and_variables_can_be_referred_to(key: str) -> None:
    assert references.fault_in_key(key) is None


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("modle", "did you mean model"),
        ("HOME", "no setting"),
        ("agent.", "no setting"),
        ("secret:X", "no setting"),
    ],
)
def test_nothing_else_can(key: str, told: str) -> None:
    assert told in str(references.fault_in_key(key))


def test_the_nearest_one_is_told_in_a_half_sentence() -> None:
    assert '"modle", which is no setting (did you mean model?)' == references.fault_in_key("modle")
    assert '"HOME", which is no setting' == references.fault_in_key("HOME")


def test_a_secrets_name_is_told_from_a_settings() -> None:
    assert references.is_secret("secret:X")
    assert not references.is_secret("model")

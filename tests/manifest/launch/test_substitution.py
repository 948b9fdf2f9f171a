import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_manifest.launch import substitution
from kt_manifest.launch.substitution import Carried, PlaceholderUnset, Unset

SYNTAXES = ("{env:VAR}", "$VAR")
SECRET = 'sk-"canary"-$TAIL-9d2e'


def _unset(*carried: Carried, secrets: tuple[str, ...] = (), **env: str) -> list[Unset]:
    return substitution.unset(carried, env, syntaxes=SYNTAXES, secrets=secrets)


def test_each_name_must_be_set_and_not_empty() -> None:
    text = Carried("model", "{env:SET} {env:EMPTY} $GONE {env:GONE}")

    assert _unset(text, SET="x", EMPTY="") == [Unset("model", "EMPTY", True), Unset("model", "GONE", False)]


def test_every_place_is_named_and_none_twice() -> None:
    found = _unset(Carried("a", "$A $A"), Carried("b", '{"x": "$A"}'))

    assert [("a", "A"), ("b", "A")] == [(one.label, one.name) for one in found]


def test_without_a_syntax_nothing_is_scanned() -> None:
    assert [] == substitution.unset([Carried("a", "{env:A}")], {}, syntaxes=())


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f"key={SECRET}",
        f"{{env:{SECRET}}}",
        f"$PREFIX{SECRET[4:]}",
        json.dumps({"apiKey": SECRET}),
        json.dumps({"inner": json.dumps({"apiKey": SECRET})}),
    ],
)
def test_no_part_of_a_secret_is_told(text: str) -> None:
    secrets = (SECRET, SECRET[4:])

    error = PlaceholderUnset(_unset(Carried("agent.K", text), secrets=secrets))

    assert "agent.K names a variable (not named here: part of a secret)" in str(error)
    assert not any(part in repr(error) + str(error) for part in ("canary", "TAIL", "9d2e"))


def test_a_name_beside_a_secret_is_told() -> None:
    text = json.dumps({"apiKey": SECRET, "url": "{env:URL}"})

    assert "URL" in [one.name for one in _unset(Carried("agent.K", text), secrets=(SECRET,))]


def test_the_message_says_got_wanted_and_what_to_do() -> None:
    error = PlaceholderUnset([Unset("model", "A", False), Unset("[lifecycle.start] args", "B", True)])

    assert 1 == error.exit_code
    assert str(error) == (
        "placeholders without a value: got model names A, which is not set; [lifecycle.start] args names B, which is "
        "empty, wanted every variable that the agent replaces in its configuration set and not empty; set it "
        "(kt agent config set AGENT agent.A VALUE), or correct the value"
    )


def test_the_agent_is_named_where_it_is_known() -> None:
    error = PlaceholderUnset([Unset("model", "A", False)], agent="bot")

    assert "kt agent config set bot agent.A VALUE" in str(error)


def test_of_many_some_are_named_and_the_rest_counted() -> None:
    error = PlaceholderUnset([Unset("k", f"V{number}", False) for number in range(20)])

    assert "V7" in error.got
    assert "V8" not in error.got
    assert error.got.endswith("and 12 more")


def test_a_name_that_no_variable_can_have_is_not_proposed() -> None:
    error = PlaceholderUnset([Unset("k", " A\x1b[31m", False)])

    assert "agent.NAME VALUE" in error.do
    assert "\x1b" not in str(error)


@given(
    st.text(min_size=4, max_size=12),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from(["", "{env:", "$", "{env:A"]),
)
def test_a_name_that_is_told_has_nothing_of_a_secret(secret: str, before: str, after: str, mark: str) -> None:
    text = f"{before}{mark}{secret}}}{after}"

    for one in _unset(Carried("k", text), secrets=(secret,)):
        assert one.name is None or secret not in one.name

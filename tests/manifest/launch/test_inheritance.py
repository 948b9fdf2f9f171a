import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_manifest.launch import inheritance

CALLER = {
    "PATH": "/bin",
    "LC_ALL": "C",
    "XDG_RUNTIME_DIR": "/run/user/1",
    "no_proxy": "corp",
    "SSH_AUTH_SOCK": "/run/agent",
    "GIT_AUTHOR_NAME": "A",
    "GIT_DIR": "/elsewhere/.git",
    "OPENAI_API_KEY": "sk-canary",
    "OPENAI_BASE_URL": "https://provider",
    "KT_RUN": "another",
    "KTESIO_STATE_DIR": "/state",
    "COLOUR": "blue",
}


def test_the_default_lets_in_what_programs_need_and_no_key_and_no_address() -> None:
    got = inheritance.inherited(CALLER)

    assert {
        "PATH",
        "LC_ALL",
        "XDG_RUNTIME_DIR",
        "no_proxy",
        "SSH_AUTH_SOCK",
        "GIT_AUTHOR_NAME",
        "KTESIO_STATE_DIR",
    } == set(got)


def test_a_list_of_ones_own_takes_the_place_of_the_default() -> None:
    assert {"COLOUR": "blue"} == inheritance.inherited(CALLER, ["COLOUR", "ABSENT"])


def test_the_default_can_be_part_of_a_list() -> None:
    got = inheritance.inherited(CALLER, [inheritance.DEFAULTS, "COL*"])

    assert inheritance.inherited(CALLER) | {"COLOUR": "blue"} == got


def test_an_empty_list_inherits_nothing() -> None:
    assert {} == inheritance.inherited(CALLER, [])


def test_a_providers_key_comes_in_by_its_full_name_only() -> None:
    everything = inheritance.inherited(CALLER, ["*"])
    named = inheritance.inherited(CALLER, ["OPENAI_API_KEY"])

    assert set(CALLER) - {"OPENAI_API_KEY", "KT_RUN"} == set(everything)
    assert {"OPENAI_API_KEY": "sk-canary"} == named


def test_another_runs_identity_never_comes_in() -> None:
    assert {} == inheritance.inherited({"KT_RUN": "r", "KT_INSTANCE": "i"}, ["KT_*", "KT_RUN", "*"])


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "anthropic_auth_token", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY"]
)
def test_keys_are_known_by_their_names(name: str) -> None:
    assert inheritance.is_provider_key(name)


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK", "API_KEY_FILE"])
def test_what_is_named_after_keys_is_none(name: str) -> None:
    assert not inheritance.is_provider_key(name)


@pytest.mark.parametrize("pattern", ["PATH", "LC_*", "*", "@default", "agent.x", "A-B"])
def test_names_beginnings_and_the_default_are_patterns(pattern: str) -> None:
    assert inheritance.fault(pattern) is None


@pytest.mark.parametrize("pattern", ["", "A*B", "**", "A=B", "KT_RUN", "KT_*", "A\x07", "A B"])
def test_anything_else_is_no_pattern_and_says_why(pattern: str) -> None:
    assert inheritance.fault(pattern)


@given(st.dictionaries(st.text(), st.text()), st.lists(st.text()))
def test_nothing_is_ever_added_or_changed(environment: dict[str, str], patterns: list[str]) -> None:
    got = inheritance.inherited(environment, patterns)

    assert got.items() <= environment.items()

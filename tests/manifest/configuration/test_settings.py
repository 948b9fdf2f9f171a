from pathlib import Path

import pytest

from kt_manifest.configuration import secrets, settings

ROOT = Path(__file__).parents[3]
DOCUMENTED = {
    "model",
    "budget.tokens.per_run",
    "budget.tokens.cumulative",
    "budget.breach_action",
    "cost.rate.input",
    "cost.rate.output",
    "cost.rate.cached",
    "budget.dollars.per_run",
    "budget.dollars.cumulative",
    "metering.upstream_base_url",
    "metering.base_url",
    "memory.dir",
    "acp.command",
    "acp.args",
}
OURS = {
    "metering.upstream_api_key",
    "metering.listener_auth",
    "metering.origin",
    "restart.policy",
    "restart.limit",
    "restart.window",
    "restart.reset_after",
    "autostart",
    "pause.hold_s",
    "limits.memory",
    "limits.cpu",
    "limits.pids",
    "limits.nofile",
    "env.inherit",
    "logs.cap",
    "hooks.on_start",
    "hooks.on_stop",
    "hooks.on_crash",
    "hooks.on_breach",
    "hooks.on_any",
}


def test_the_fourteen_documented_keys_and_ours_are_declared_once() -> None:
    assert set(settings.BY_KEY) == DOCUMENTED | OURS
    assert len(settings.OPTIONS) == len(settings.BY_KEY)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("model", "gpt-x", "gpt-x"),
        ("model", "-dash", "-dash"),
        ("model", "secret:MODEL", "secret:MODEL"),
        ("metering.upstream_base_url", "https://api.openai.com/v1/", "https://api.openai.com/v1"),
        ("metering.upstream_base_url", "secret:URL", "secret:URL"),
        ("metering.upstream_api_key", "secret:KEY", "secret:KEY"),
        ("metering.listener_auth", "none", "none"),
        ("acp.args", "--acp  -v", ["--acp", "-v"]),
        ("agent.FOO", "a b", "a b"),
        ("agent.foo.BAR", "secret:X", "secret:X"),
    ],
)
def test_a_good_value_is_what_is_stored(key: str, text: str, value: object) -> None:
    assert value == settings.check(key, text)


@pytest.mark.parametrize("key", sorted(key for key in DOCUMENTED if key.startswith(("budget.", "cost."))))
def test_limits_and_prices_are_refused_while_nothing_enforces_them(key: str) -> None:
    text = "warn" if key.endswith("action") else "5"

    with pytest.raises(settings.NotEnforcedYet, match="not enforced yet") as caught:
        settings.check(key, text)

    assert (5, key) == (caught.value.exit_code, caught.value.key)


@pytest.mark.parametrize("key", ["metering.base_url", "metering.origin", "memory.dir"])
def test_what_the_engine_sets_is_reserved(key: str) -> None:
    with pytest.raises(settings.ReservedKey, match=key) as caught:
        settings.check(key, "http://127.0.0.1:1")

    assert caught.value.exit_code == 2
    assert ("metering.upstream_base_url" in caught.value.do) == key.startswith("metering.")


@pytest.mark.parametrize(
    ("key", "do"),
    [
        ("modle", "did you mean model?"),
        ("budget.tokens.per_rum", "did you mean budget.tokens.per_run?"),
        ("metering.upstream_base_ur", "did you mean metering.upstream_base_url?"),
        ("acp", "no close match"),
        ("agent", "no close match"),
        ("", "no close match"),
        ("model.", "did you mean model?"),
        ("x" * 100_000, "no close match"),
    ],
    ids=range(8),
)
def test_an_unknown_key_is_told_the_nearest(key: str, do: str) -> None:
    with pytest.raises(settings.UnknownKey) as caught:
        settings.check(key, "x")

    assert (2, do) == (caught.value.exit_code, caught.value.do)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("model", "a\0"),
        ("model", "\ud800"),
        ("model", "secret:****"),
        ("metering.listener_auth", "yes"),
        ("metering.upstream_base_url", "api.openai.com"),
        ("metering.upstream_api_key", "a b"),
        ("acp.args", "secret:X"),
        ("metering.listener_auth", "secret:X"),
        ("budget.tokens.per_run", "many"),
        ("budget.breach_action", "secret:X"),
        ("agent.", "x"),
        ("agent.A=B", "x"),
        ("agent.A..B", "x"),
        ("agent..A", "x"),
        ("agent.A.", "x"),
        ("agent.A B", "x"),
        ("agent.A", "\0"),
        ("agent.A", "secret:****"),
    ],
)
def test_a_bad_value_says_got_and_wanted(key: str, text: str) -> None:
    with pytest.raises(settings.InvalidValue) as caught:
        settings.check(key, text)

    assert caught.value.exit_code == 2
    assert all(
        part and part in str(caught.value)
        for part in (caught.value.got, caught.value.wanted, caught.value.do)
    )


def test_a_provider_key_that_is_refused_is_not_repeated() -> None:
    with pytest.raises(settings.InvalidValue) as caught:
        settings.check("metering.upstream_api_key", "hunter2 ")

    assert "hunter2" not in str(caught.value)


def test_stored_arrays_are_for_the_list_keys_alone() -> None:
    assert settings.check_stored("acp.args", ["a b", "c"]) == ["a b", "c"]
    assert settings.check_stored("model", "x") == "x"
    for key, value, error in (
        ("model", ["x"], settings.InvalidValue),
        ("agent.A", ["x"], settings.InvalidValue),
        ("acp.args", ["\0"], settings.InvalidValue),
        ("modle", ["x"], settings.UnknownKey),
    ):
        with pytest.raises(error):
            settings.check_stored(key, value)


def test_what_may_be_shown() -> None:
    assert settings.shown("model", "x") == "x"
    assert settings.shown("model", "secret:X") == "secret:****"
    assert settings.shown("acp.args", ["x"]) == ["x"]
    assert settings.shown("metering.upstream_api_key", "sk-clear") == "****"


def test_only_pass_through_is_unvalidated() -> None:
    assert settings.is_unvalidated("agent.FOO")
    assert not settings.is_unvalidated("model")


def test_the_documentation_has_the_declared_table() -> None:
    document = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")

    assert document == settings.markdown()
    assert "generated" in document.splitlines()[0]


def test_a_value_of_a_megabyte_is_refused_with_what_can_be_carried() -> None:
    with pytest.raises(settings.InvalidValue) as refused:
        settings.check("agent.A", "x" * 1_000_000)

    assert "got a value of 1000000 bytes, wanted at most 131071 bytes" in str(refused.value)
    assert len(str(refused.value)) < 300
    assert "x" * 131_071 == settings.check("agent.A", "x" * 131_071)


@pytest.mark.parametrize(
    ("key", "text", "stored", "shown"),
    [
        ("agent.HEADER", "Bearer ${secret:A}", "Bearer ${secret:A}", "Bearer secret:****"),
        (
            "metering.upstream_base_url",
            "https://${secret:HOST}/v1",
            "https://${secret:HOST}/v1",
            "https://secret:****/v1",
        ),
        ("acp.args", "-k ${secret:A}", ["-k", "${secret:A}"], ["-k", "secret:****"]),
        ("metering.upstream_api_key", "pre-${secret:A}", "pre-${secret:A}", "secret:****"),
    ],
)
def test_a_reference_may_stand_inside_of_a_value(key: str, text: str, stored: object, shown: object) -> None:
    assert stored == settings.check(key, text) == settings.check_stored(key, settings.check(key, text))
    assert shown == settings.shown(key, settings.check(key, text))


@pytest.mark.parametrize("key", ["restart.limit", "logs.cap", "env.inherit", "metering.listener_auth"])
def test_a_reference_inside_of_what_takes_none_is_refused(key: str) -> None:
    with pytest.raises(settings.InvalidValue, match="a secret reference"):
        settings.check(key, "${secret:A}")


def test_a_mask_that_was_typed_back_is_refused_inside_of_a_value_too() -> None:
    with pytest.raises(settings.InvalidValue, match="the mask that is shown"):
        settings.check("agent.HEADER", "Bearer secret:****")


def test_a_secret_in_an_argument_stays_one_argument(tmp_path: Path) -> None:
    resolved = secrets.resolve_all(
        {"acp.args": ["-k", "${secret:A}"], "model": "m"},
        environment={"A": "two words"},
        secrets_file=tmp_path / "secrets.toml",
    )

    assert {"acp.args": ["-k", "two words"], "model": "m"} == settings.check_resolved(resolved)
    assert {"acp.args"} == resolved.secret_keys


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:4711/t0ken/v1", "http://127.0.0.1:4711/****/v1"),
        ("http://127.0.0.1:4711/t0ken", "http://127.0.0.1:4711/****"),
        ("http://127.0.0.1:4711", "http://127.0.0.1:4711"),
    ],
)
def test_an_address_with_the_token_of_a_run_is_shown_without_it(url: str, shown: str) -> None:
    assert shown == settings.shown("metering.base_url", url) == settings.shown("metering.origin", url)

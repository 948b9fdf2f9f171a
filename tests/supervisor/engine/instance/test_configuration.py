from typing import Any

SLEEPS = "import time\ntime.sleep(600)"


def test_a_value_is_kept_shown_with_its_layer_and_forgotten(house: Any) -> None:
    house.register("bot", SLEEPS)

    house.set("bot", "model", "small")
    shown = house.ask("GET", "/v1/agents/bot/config?key=model")
    house.ask("DELETE", "/v1/agents/bot/config?key=model")
    again = house.refusal("GET", "/v1/agents/bot/config?key=model")

    entry = {"key": "model", "value": "small", "source": "instance", "unvalidated": False}
    entry |= {"file": str(house.files.home("bot") / "config.toml")}
    assert [entry] == shown["entries"]
    assert 2 == again.exit_code


def test_refused_keys_have_the_contracts_exit_codes_and_write_nothing(house: Any) -> None:
    house.register("bot", SLEEPS)
    path = house.files.home("bot") / "config.toml"

    codes = [
        house.refusal("PUT", "/v1/agents/bot/config", {"key": key, "value": value, "env": {}}).exit_code
        for key, value in (
            ("modle", "x"),
            ("metering.base_url", "http://x"),
            ("metering.upstream_base_url", "ftp://x"),
            ("budget.tokens.per_run", "5"),
        )
    ]

    assert [2, 2, 2, 5] == codes
    assert not path.exists()


def test_a_secret_is_masked_and_revealed_from_the_callers_variables_or_the_operators_file(house: Any) -> None:
    house.register("bot", SLEEPS)
    house.set("bot", "agent.TOKEN", "secret:BOT_TOKEN")
    house.files.secrets.touch(mode=0o600)
    house.files.secrets.write_text('BOT_TOKEN = "clear"\n')

    masked = house.ask("GET", "/v1/agents/bot/config?key=agent.TOKEN")["entries"][0]["value"]
    revealed = house.ask("GET", "/v1/agents/bot/config?key=agent.TOKEN&reveal=1")["entries"][0]["value"]
    caller = {"env": {"BOT_TOKEN": "mine"}}
    callers = house.ask("GET", "/v1/agents/bot/config?key=agent.TOKEN&reveal=1", caller)["entries"][0][
        "value"
    ]
    house.files.secrets.unlink()

    assert ("secret:****", "clear", "mine") == (masked, revealed, callers)


def test_a_table_names_its_keys(house: Any) -> None:
    house.register("bot", SLEEPS)
    house.set("bot", "agent.A", "1")

    refused = house.refusal("GET", "/v1/agents/bot/config?key=agent")

    assert 2 == refused.exit_code
    assert "agent.A" in str(refused)


def test_an_unresolved_secret_refuses_the_start_and_changes_nothing(house: Any) -> None:
    house.register("bot", SLEEPS)
    house.set("bot", "agent.TOKEN", "secret:NOWHERE")

    refused = house.refusal("POST", "/v1/agents/bot/start", {"env": {}})

    assert 1 == refused.exit_code
    assert "NOWHERE" in str(refused)
    assert "registered" == house.entry("bot")["state"]


def test_a_layer_broken_by_hand_is_named_with_its_line(house: Any) -> None:
    house.register("bot", SLEEPS)
    (house.files.home("bot") / "config.toml").write_text("model = \n")

    refused = house.refusal("POST", "/v1/agents/bot/start", {"env": {}})

    assert 1 == refused.exit_code
    assert "line 1" in str(refused)
    assert "registered" == house.entry("bot")["state"]


def test_a_key_that_a_broken_value_hides_is_told_with_the_fault_and_not_as_unset(house: Any) -> None:
    house.register("bot", SLEEPS)
    (house.root / "config.toml").write_text('limits.memory = "64M"\n')
    (house.files.home("bot") / "config.toml").write_text("limits = 5\n")

    refused = house.refusal("GET", "/v1/agents/bot/config?key=limits.memory")
    (house.root / "config.toml").unlink()

    assert str(house.files.home("bot") / "config.toml") in str(refused)
    assert "not set" not in str(refused)

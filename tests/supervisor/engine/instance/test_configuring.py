"""Settings of all agents and of one start, edits, and what is broken by hand, with a real engine."""

from typing import Any

import pytest

from kt_manifest.configuration import settings
from kt_supervisor.engine.instance import configuring

TELLS = "import os, time; print(os.environ.get('X'), os.environ.get('TEAM'), flush=True); time.sleep(600)"
CRASHES_ONCE = (
    "import os, sys, time; print(os.environ.get('X'), flush=True); time.sleep(0.4)\n"
    "seen = os.path.exists('seen'); open('seen', 'w'); time.sleep(600 if seen else 0); sys.exit(3)"
)


@pytest.fixture(autouse=True)
def _no_fleet_file(house: Any) -> Any:
    yield
    house.files.fleet_config.unlink(missing_ok=True)


def _set_for_all(house: Any, key: str, value: str) -> Any:
    return house.ask("PUT", "/v1/config", {"key": key, "value": value, "env": {}})


def _get(house: Any, key: str = "", name: str = "bot") -> dict[str, Any]:
    target = f"/v1/agents/{name}/config" if name else "/v1/config"
    found = house.ask("GET", f"{target}?key={key}" if key else target)["entries"]
    return {entry["key"]: (entry["value"], entry["source"]) for entry in found}


def _start(house: Any, **given: str) -> Any:
    named = {key.replace("__", "."): value for key, value in given.items()}
    return house.ask("POST", "/v1/agents/bot/start", {"env": {"PATH": "/usr/bin:/bin"}, "settings": named})


def _agents_words(house: Any) -> list[str]:
    return [line["text"] for line in house.said("bot") if line["stream"] == "agent-out"]


def test_what_is_set_for_all_holds_for_each_that_does_not_say_otherwise(house: Any) -> None:
    house.register("bot", TELLS)
    house.register("other", TELLS)

    _set_for_all(house, "agent.TEAM", "research")
    told = _set_for_all(house, "agent.TEAM", "sales")["notices"]
    house.set("bot", "agent.TEAM", "law")

    assert ["agent.TEAM was research"] == told
    assert {"agent.TEAM": ("law", "instance")} == _get(house, "agent.TEAM")
    assert {"agent.TEAM": ("sales", "fleet")} == _get(house, "agent.TEAM", name="other")
    assert {"agent.TEAM": ("sales", "fleet")} == _get(house, "agent.TEAM", name="")
    assert ["agent.TEAM was sales", "agent.TEAM is set for bot itself, which wins"] == _set_for_all(
        house, "agent.TEAM", "x"
    )["notices"]
    house.ask("DELETE", "/v1/config?key=agent.TEAM")
    assert 2 == house.refusal("DELETE", "/v1/config?key=agent.TEAM").exit_code
    assert 2 == house.refusal("GET", "/v1/config?key=agent.TEAM").exit_code


def test_settings_of_a_start_hold_over_restarts_until_the_next_start(house: Any) -> None:
    house.register("bot", TELLS)
    house.set("bot", "agent.X", "file")

    _start(house, agent__X="one", restart__policy="never")
    live = _get(house, "agent.X")
    policy = house.entry("bot")["restart_policy"]
    house.ask("POST", "/v1/agents/bot/restart", {"env": {}, "timeout_s": 5})
    house.until(lambda: 2 == len(_agents_words(house)), "both have spoken")
    restarted = _get(house, "agent.X")
    house.stop("bot")
    stopped = _get(house, "agent.X")
    _start(house)
    house.until(lambda: 3 == len(_agents_words(house)), "all have spoken")

    assert ("never", "on-failure") == (policy, house.entry("bot")["restart_policy"])
    assert [{"agent.X": ("one", "invocation-override")}] * 2 == [live, restarted]
    assert [{"agent.X": ("file", "instance")}] * 2 == [stopped, _get(house, "agent.X")]
    assert ["one None", "one None", "file None"] == _agents_words(house)


def test_settings_of_a_start_hold_for_an_agent_that_is_brought_back(house: Any) -> None:
    house.register("bot", CRASHES_ONCE)

    _start(house, agent__X="one")
    house.until(lambda: 2 == len(_agents_words(house)), "it came back")

    assert ["one", "one"] == _agents_words(house)
    assert {"agent.X": ("one", "invocation-override")} == _get(house, "agent.X")


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ({"modle": "x"}, 2, "did you mean model?"),
        ({"metering__base_url": "http://127.0.0.1:1"}, 2, "reserved config key"),
        ({"memory__dir": "/x"}, 2, "reserved config key"),
        ({"restart__limit": "0"}, 2, "invalid value for restart.limit"),
        ({"budget__tokens__per_run": "5"}, 5, "not enforced yet"),
        ({"agent__A": "1", "agent__A__B": "2"}, 2, "conflicting config key"),
    ],
)
def test_a_start_with_settings_that_cannot_be_changes_nothing(
    house: Any, given: dict[str, str], code: int, says: str
) -> None:
    house.register("bot", TELLS)
    named = {key.replace("__", "."): value for key, value in given.items()}

    refused = house.refusal("POST", "/v1/agents/bot/start", {"env": {}, "settings": named})

    assert code == refused.exit_code
    assert says in str(refused)
    assert "registered" == house.entry("bot")["state"]


def test_a_key_in_the_clear_is_no_setting_of_a_start() -> None:
    with pytest.raises(settings.InvalidValue) as refused:
        configuring.check_overrides({"metering.upstream_api_key": "sk-canary"})

    assert "sk-canary" not in str(refused.value)
    assert "wanted secret:NAME" in str(refused.value)
    with pytest.raises(settings.InvalidValue):
        configuring.check_overrides({"agent.MY_API_KEY": "sk-canary"})
    assert {"metering.upstream_api_key": "secret:K"} == configuring.check_overrides(
        {"metering.upstream_api_key": "secret:K"}
    )


@pytest.mark.parametrize("whose", ["fleet", "instance"])
def test_what_is_broken_by_hand_is_told_everywhere_and_refuses_a_start(house: Any, whose: str) -> None:
    house.register("bot", TELLS)
    house.start("bot")
    instance_id = house.entry("bot")["id"] if whose == "instance" else None
    file = house.files.fleet_config if whose == "fleet" else house.files.home("bot") / "config.toml"

    def told(change: str) -> list[Any]:
        events = list(house.link.lines("/v1/events?limit=1000", timeout_s=10))
        mine = [event for event in events if event["kind"] == "configuration"]
        return [e for e in mine if e["change"] == change and e["instance_id"] == instance_id]

    before = len(told("alarm")), len(told("alarm-over"))
    file.write_text('restart.policy = "sometimes"\n')
    house.until(lambda: len(told("alarm")) > before[0], "an event tells of it")
    shown = house.entry("bot")
    listed = house.ask("GET", "/v1/agents")["instances"][0]
    got = house.ask("GET", "/v1/agents/bot/config")
    one = house.refusal("GET", "/v1/agents/bot/config?key=restart.policy")
    refused = house.refusal("POST", "/v1/agents/bot/restart", {"env": {}})

    [alarm] = shown["alarms"]
    assert (whose, "restart.policy") == (alarm["layer"], alarm["key"])
    assert "until it is corrected, on-failure stays in force, and a start is refused" in alarm["message"]
    assert [alarm] == listed["alarms"] == got["alarms"]
    assert alarm["message"].partition("; until")[0] in told("alarm")[-1]["message"]
    assert "a start" in told("alarm")[-1]["message"]
    [entry] = [entry for entry in got["entries"] if entry["key"] == "restart.policy"]
    assert ("sometimes", whose) == (entry["value"], entry["source"])
    assert "invalid value for restart.policy" in entry["fault"]
    assert "on-failure" == shown["restart_policy"]
    for refusal in (one, refused):
        assert 2 == refusal.exit_code
        assert f"it stands in {file} ({whose})" in str(refusal)
    assert "running" == house.entry("bot")["state"]
    file.unlink()
    house.until(lambda: len(told("alarm-over")) > before[1], "an event tells that it is over")
    assert "alarms" not in house.entry("bot")


def test_a_file_is_edited_as_a_whole_and_judged_before_it_takes_its_place(house: Any) -> None:
    house.register("bot", TELLS)
    house.set("bot", "model", "a")
    target = "/v1/agents/bot/config/file"
    was = house.ask("GET", target)["text"]
    bad = 'modle = "b"\nrestart.limit = 0\n'

    refused = house.refusal("PUT", target, {"text": bad, "was": was})
    malformed = house.refusal("PUT", target, {"text": "model =", "was": was})
    house.set("bot", "model", "theirs")
    late = house.refusal("PUT", target, {"text": 'model = "mine"\n', "was": was})
    there = house.ask("GET", target)["text"]
    done = house.ask("PUT", target, {"text": '# mine\nmodel = "mine"\n', "was": there})

    assert (2, 1, 4) == (refused.exit_code, malformed.exit_code, late.exit_code)
    assert "did you mean model?" in str(refused)
    assert "invalid value for restart.limit" in str(refused)
    assert "another writer's change of model" in str(late)
    assert 'model = "theirs"\n' == there
    assert ["model"] == done["changed"]
    assert '# mine\nmodel = "mine"\n' == (house.files.home("bot") / "config.toml").read_text()
    assert {"model": ("mine", "instance")} == _get(house, "model")


def test_a_diff_compares_with_what_the_run_was_started_with(house: Any) -> None:
    house.register("bot", TELLS)
    house.files.secrets.touch(mode=0o600)
    house.files.secrets.write_text('A = "x"\nB = "y"\n')

    def changes() -> list[tuple[Any, ...]]:
        found = house.ask("GET", "/v1/agents/bot/config/diff")["changes"]
        return [(one["key"], one["from"], one["to"], one["effect"]) for one in found]

    never = house.ask("GET", "/v1/agents/bot/config/diff")
    house.set("bot", "agent.TOKEN", "secret:A")
    house.set("bot", "metering.upstream_api_key", "sk-canary-one")
    _start(house, agent__X="1")
    override = changes()
    house.ask("POST", "/v1/agents/bot/stop", {"timeout_s": 1})
    _start(house)
    nothing = changes()
    house.set("bot", "agent.TOKEN", "secret:B")
    house.set("bot", "metering.upstream_api_key", "sk-canary-two")
    _set_for_all(house, "restart.policy", "never")
    house.set("bot", "model", "small")

    assert (None, []) == (never["run_id"], never["changes"])
    assert "never started" in never["notices"][0]
    assert [("agent.X", "1", None, "at the next start")] == override
    assert [] == nothing
    assert [
        ("agent.TOKEN", "secret:****", "secret:****", "at the next start"),
        ("metering.upstream_api_key", "****", "****", "at the next start"),
        ("model", None, "small", "at the next start"),
        ("restart.policy", "on-failure", "never", "in force already"),
    ] == changes()
    assert "canary" not in house.files.started(house.entry("bot")["id"]).read_text()
    rendered = house.ask("POST", "/v1/agents/bot/render", {"env": {"PATH": "/usr/bin:/bin"}})
    key = {"what": "setting", "name": "metering.upstream_api_key", "how": "changed"}
    assert key in rendered["running"]["differs"]
    (house.files.home("bot") / "config.toml").write_text('agent.TOKEN = "secret:"\n')
    assert ("agent.TOKEN", "secret:****", "secret:", "so that the next start is refused") in changes()


def test_a_key_in_the_clear_is_taken_told_and_never_shown(house: Any) -> None:
    house.register("bot", TELLS)

    one = house.set("bot", "metering.upstream_api_key", "sk-canary-one")
    two = house.set("bot", "agent.MY_API_KEY", "sk-canary-two")
    again = house.set("bot", "agent.MY_API_KEY", "sk-canary-three")
    reference = house.set("bot", "agent.MY_API_KEY", "secret:MY_API_KEY")
    file = "/v1/agents/bot/config/file"
    was = house.ask("GET", file)["text"]
    edited = house.ask("PUT", file, {"text": f'{was}\nHIS_API_KEY = "sk-canary-four"\n', "was": was})

    assert ["****", "****", "secret:****"] == [answer["value"] for answer in (one, two, reference)]
    assert ["at the next start"] * 2 == [answer["effect"] for answer in (one, reference)]
    assert "kt secret set NAME" in one["notices"][0]
    assert "is kept in the clear in config.toml and may stand in this shell's history" in two["notices"][0]
    assert "`kt secret set MY_API_KEY`, then the value secret:MY_API_KEY" in two["notices"][0]
    assert "agent.MY_API_KEY had another value, which is replaced" == again["notices"][0]
    assert not [notice for notice in reference["notices"] if "clear" in notice]
    assert ["agent.HIS_API_KEY is kept in the clear in config.toml;"] == [
        notice.partition(" better")[0] for notice in edited["notices"]
    ]
    assert ("****", "instance") == _get(house)["agent.HIS_API_KEY"]
    events = list(house.link.lines("/v1/events?limit=1000", timeout_s=10))
    for shown in (one, two, again, reference, edited, _get(house), events):
        assert "canary" not in str(shown)


def test_a_key_that_is_inherited_by_its_name_is_not_in_what_the_agent_prints(house: Any) -> None:
    house.register("bot", "import os, time; print('has', os.environ['MY_API_KEY']); time.sleep(600)")
    house.set("bot", "env.inherit", "@default MY_API_KEY")

    house.start("bot", MY_API_KEY="sk-canary-inherited")

    house.until(lambda: _agents_words(house), "it has spoken")
    assert ["has " + "*" * len("sk-canary-inherited")] == _agents_words(house)


def test_a_list_that_lets_nothing_in_says_what_that_means(house: Any) -> None:
    house.register("bot", TELLS)

    assert "not even PATH" in house.set("bot", "env.inherit", "")["notices"][0]
    assert "at once" == house.set("bot", "restart.policy", "never")["effect"]


def test_what_the_engine_delivers_to_a_run_is_shown_without_its_token(house: Any) -> None:
    house.register("bot", TELLS, observe=True)
    _set_for_all(house, "metering.upstream_base_url", "http://127.0.0.1:9/api/v1")
    before = _get(house)
    house.start("bot")
    port = house.entry("bot")["port"]

    shown = _get(house)
    revealed = house.ask("GET", "/v1/agents/bot/config?key=metering.origin&reveal=1", {"env": {}})

    assert "metering.origin" not in before
    assert (f"http://127.0.0.1:{port}/****/api/v1", "invocation-override") == shown["metering.base_url"]
    assert (f"http://127.0.0.1:{port}/****", "invocation-override") == shown["metering.origin"]
    [entry] = revealed["entries"]
    assert entry["injected"]
    token = entry["value"].rpartition("/")[2]
    assert 20 < len(token)
    assert token not in str(house.ask("GET", "/v1/agents/bot/config"))
    house.stop("bot")
    assert 2 == house.refusal("GET", "/v1/agents/bot/config?key=metering.origin").exit_code


def test_a_provider_for_all_gives_each_its_listener(house: Any) -> None:
    house.register("bot", TELLS, observe=True)

    _set_for_all(house, "metering.upstream_base_url", "http://127.0.0.1:9/v1")

    assert house.entry("bot")["metering"]["port"]
    assert "http://127.0.0.1:9/v1" == house.entry("bot")["metering"]["upstream"]
    house.ask("DELETE", "/v1/config?key=metering.upstream_base_url")
    assert house.entry("bot")["metering"]["upstream"] is None


def test_an_adapters_defaults_are_weaker_than_everybody(house: Any) -> None:
    house.register("bot", TELLS, defaults={"agent.TEAM": "kind", "restart.policy": "never"})

    kind = _get(house)
    _set_for_all(house, "restart.policy", "always")

    assert ("kind", "kind-default") == kind["agent.TEAM"]
    assert ("never", "kind-default") == kind["restart.policy"]
    assert {"restart.policy": ("always", "fleet")} == _get(house, "restart.policy")
    house.start("bot")
    house.until(lambda: _agents_words(house), "it has spoken")
    assert ["None kind"] == _agents_words(house)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("agent.A", "x" * 1_000_000, "got a value of 1000000 bytes"),
        ("agent.A\x1b", "x", "a name with a space or control character"),
        ("agent.A", "x\0y", "a NUL character"),
        ("agent..A", "x", "an empty segment between dots"),
        ("", "x", "unknown config key"),
        ("x" * 1_000_000, "x", "no close match"),
        ("restart", "x", "unknown config key"),
    ],
)
@pytest.mark.parametrize("target", ["/v1/config", "/v1/agents/bot/config"])
def test_what_no_setting_can_be_is_refused_in_a_sentence(
    house: Any, target: str, key: str, value: str, says: str
) -> None:
    house.register("bot", TELLS)

    refused = house.refusal("PUT", target, {"key": key, "value": value, "env": {}})

    assert 2 == refused.exit_code
    assert says in str(refused)
    assert len(str(refused)) < 500
    assert str(refused).isprintable()
    assert not house.files.fleet_config.exists()
    assert not (house.files.home("bot") / "config.toml").exists()


def test_a_key_for_all_that_goes_to_an_adapters_address_is_told(house: Any) -> None:
    url = {"metering.upstream_base_url": "http://127.0.0.1:9/v1"}
    house.register("bot", TELLS, observe=True, defaults=url)
    _set_for_all(house, "metering.upstream_api_key", "secret:KEY")

    def told() -> list[str]:
        answer = house.ask("POST", "/v1/agents/bot/start", {"env": {"PATH": "/usr/bin:/bin", "KEY": "sk-x"}})
        house.stop("bot")
        return [notice for notice in answer["notices"] if "the adapter names" in notice]

    assert 1 == len(told())
    house.set("bot", "metering.upstream_base_url", "http://127.0.0.1:9/v1")
    assert [] == told()


def test_settings_of_a_start_outlive_the_engine_and_go_with_the_agent(house: Any) -> None:
    house.register("bot", TELLS)
    _start(house, agent__X="one", restart__policy="never")
    kept = house.files.started(house.entry("bot")["id"])

    house.kill_engine()
    house.wait_for_engine()

    assert {"agent.X": ("one", "invocation-override")} == _get(house, "agent.X")
    assert "never" == house.entry("bot")["restart_policy"]
    assert kept.exists()
    house.ask("DELETE", "/v1/agents/bot?home=retain&force=1")
    assert not kept.exists()

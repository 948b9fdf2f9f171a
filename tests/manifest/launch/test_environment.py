import json
from dataclasses import replace
from pathlib import Path

import pytest

from kt_manifest.contract import kinds
from kt_manifest.contract.declared_posture import ConfigSwitch, Isolation, Posture, Updates
from kt_manifest.contract.snapshot import Adapter, EnvTarget, FileTarget, FlagTarget, Rule, Shape, Template
from kt_manifest.launch import environment
from kt_manifest.launch.delivery import Delivery, ValueUnfit
from kt_manifest.launch.posture import SwitchUndeliverable
from kt_manifest.launch.run_facts import RunFacts

POSTURE = Posture(
    isolation=Isolation(env={"ROOT": "root"}),
    updates=Updates(env={"NO_UPDATE": "1"}, config=ConfigSwitch(env="CONTENT", key="update", value=False)),
)


def _adapter(*rules: Rule, env: dict[str, str] | None = None) -> Adapter:
    plain = kinds.command(["prog"], interactive=False, observe=False)
    return replace(plain, start=Template(exec="prog", env=env or {}), mapping=rules, posture=POSTURE)


def _of(
    adapter: Adapter, values: dict[str, str] | None = None, **facts: object
) -> tuple[dict[str, tuple[str, str]], list[str]]:
    run = RunFacts(**({"home": Path("/h"), "base_environment": {}, "run_id": "r"} | facts))  # type: ignore[arg-type]
    settings = values or {}
    found, told = environment.of(adapter, settings, run, Delivery(settings, run, adapter.types))
    return {entry.name: (entry.value, str(entry.source)) for entry in found}, told


def test_each_variable_says_where_it_comes_from() -> None:
    adapter = _adapter(
        Rule("model", EnvTarget("MODEL")), Rule("metering.base_url", EnvTarget("URL")), env={"LEVEL": "x"}
    )

    found, told = _of(
        adapter,
        {"model": "m", "agent.MORE": "n"},
        base_environment={"HOME": "/home/x"},
        metering_base_url="http://127.0.0.1:1/t",
        instance_name="bot",
    )

    loopback = "127.0.0.1,localhost,::1"
    assert found == {
        "HOME": ("/home/x", "inherited"),
        "LEVEL": ("x", "adapter"),
        "ROOT": ("/h/root", "isolation"),
        "MODEL": ("m", "setting"),
        "MORE": ("n", "setting"),
        "URL": ("http://127.0.0.1:1/t", "engine"),
        "NO_UPDATE": ("1", "updates"),
        "CONTENT": ('{"update": false}', "updates"),
        "KT_INSTANCE": ("bot", "engine"),
        "KT_RUN": ("r", "engine"),
        "NO_PROXY": (loopback, "engine"),
        "no_proxy": (loopback, "engine"),
    }
    assert [] == told


def test_isolation_wins_over_the_caller_and_yields_to_who_names_the_variable() -> None:
    by_caller, told_of_caller = _of(_adapter(), base_environment={"ROOT": "/shared"})
    by_setting, told_of_setting = _of(_adapter(), {"agent.ROOT": "/mine"})

    assert (("/h/root", "isolation"), ("/mine", "setting")) == (by_caller["ROOT"], by_setting["ROOT"])
    assert ["ROOT of the caller's environment is replaced: [kt.isolation] sets it"] == told_of_caller
    assert ["ROOT does not lead to its folder in the Agent Home: agent.ROOT sets it"] == told_of_setting


def test_nothing_switches_self_update_on_again() -> None:
    found, told = _of(
        _adapter(),
        {"agent.NO_UPDATE": "0", "agent.CONTENT": '{"update": true, "a": 1}'},
        base_environment={"NO_UPDATE": "no"},
    )

    assert ("1", "updates") == found["NO_UPDATE"]
    assert '{"update": false, "a": 1}' == found["CONTENT"][0]
    assert [
        "agent.NO_UPDATE is not delivered: [kt.updates] sets NO_UPDATE",
        "NO_UPDATE of the caller's environment is replaced: [kt.updates] sets it",
        "update in CONTENT is replaced: [kt.updates] sets it (agent.CONTENT)",
    ] == told


def test_a_configuration_that_takes_no_switch_renders_nothing() -> None:
    with pytest.raises(SwitchUndeliverable, match=r"agent\.CONTENT"):
        _of(_adapter(), {"agent.CONTENT": "not json"})


def test_without_a_name_the_agent_is_told_of_no_run() -> None:
    assert not {"KT_RUN", "KT_INSTANCE"} & set(_of(_adapter())[0])


def test_a_proxy_exemption_that_had_loopback_already_stays_the_callers() -> None:
    already = "127.0.0.1,localhost,::1"

    found, _ = _of(_adapter(), base_environment={"NO_PROXY": already})

    assert ((already, "inherited"), (already, "engine")) == (found["NO_PROXY"], found["no_proxy"])


JSON = Shape(format="json", template='{"url": "${metering.base_url}", "m": "${model}", "n": "${agent.N}"}')


def _formed(
    *rules: Rule, values: dict[str, str | list[str]], types: dict[str, str] | None = None, **facts: object
) -> tuple[dict[str, str], list[str]]:
    run = RunFacts(**({"home": Path("/h"), "base_environment": {}} | facts))  # type: ignore[arg-type]
    adapter = replace(kinds.command(["p"], interactive=False, observe=False), mapping=rules)
    found, told = environment.of(adapter, values, run, Delivery(values, run, types or {}))
    return {entry.name: entry.value for entry in found}, told


def test_a_template_arrives_as_one_json() -> None:
    rule = Rule("metering.base_url", EnvTarget("CONTENT"), JSON)

    env, notices = _formed(
        rule, values={"model": '"}', "agent.N": "7"}, types={"agent.N": "integer"}, metering_base_url="u"
    )

    assert {"url": "u", "m": '"}', "n": 7} == json.loads(env["CONTENT"])
    assert [] == notices


def test_a_template_whose_own_key_has_no_value_sets_nothing() -> None:
    env, _ = _formed(Rule("metering.base_url", EnvTarget("CONTENT"), JSON), values={"model": "m"})

    assert "CONTENT" not in env


def test_a_text_that_comes_to_nothing_sets_nothing() -> None:
    shape = Shape(format="text", template="${agent.X}")

    assert "T" not in _formed(Rule("model", EnvTarget("T"), shape), values={"model": "m"})[0]
    assert "x" == _formed(Rule("model", EnvTarget("T"), shape), values={"model": "m", "agent.X": "x"})[0]["T"]


def test_a_template_of_the_engines_key_wins_as_the_key_does() -> None:
    env, notices = _formed(
        Rule("metering.base_url", EnvTarget("C"), JSON),
        values={"agent.C": "mine"},
        metering_base_url="u",
        base_environment={"C": "callers"},
    )

    assert {"url": "u"} == json.loads(env["C"])
    assert [
        "agent.C is not delivered: metering.base_url sets C",
        "C of the caller's environment is replaced: metering.base_url sets it",
    ] == notices


def test_a_variable_keeps_its_text_and_is_checked_all_the_same() -> None:
    rule = Rule("agent.N", EnvTarget("M"))

    assert "07" == _formed(rule, values={"agent.N": "07"}, types={"agent.N": "string"})[0]["M"]
    with pytest.raises(ValueUnfit, match=r"agent\.N"):
        _formed(rule, values={"agent.N": "07"}, types={"agent.N": "integer"})


def test_pass_through_takes_references() -> None:
    env, _ = _formed(
        values={"agent.U": "${metering.origin}/x", "agent.V": "$${U}"}, metering_origin="http://h"
    )

    assert ("http://h/x", "${U}") == (env["U"], env["V"])


def test_a_variable_that_a_rule_names_is_delivered_by_its_rule_alone() -> None:
    adapter = _adapter(
        Rule("agent.IN_A_FILE", FileTarget("agent.toml", "key")),
        Rule("agent.BEHIND_A_FLAG", FlagTarget("--key")),
        Rule("agent.RENAMED", EnvTarget("OTHER")),
        Rule("agent.ITSELF", EnvTarget("ITSELF")),
    )
    names = ("IN_A_FILE", "BEHIND_A_FLAG", "RENAMED", "ITSELF", "FREE")

    found, told = _of(adapter, {f"agent.{name}": name.lower() for name in names})

    assert {
        "OTHER": ("renamed", "setting"),
        "ITSELF": ("itself", "setting"),
        "FREE": ("free", "setting"),
    } == {name: found[name] for name in found if name in (*names, "OTHER")}
    assert [] == told

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kt_manifest.contract import kinds
from kt_manifest.contract.snapshot import EnvTarget, Rule, Shape
from kt_manifest.launch import environment
from kt_manifest.launch.delivery import Delivery, ValueUnfit
from kt_manifest.launch.run_facts import RunFacts

JSON = Shape(format="json", template='{"url": "${metering.base_url}", "m": "${model}", "n": "${agent.N}"}')


def _of(
    *rules: Rule, values: dict[str, str | list[str]], types: dict[str, str] | None = None, **facts: object
) -> tuple[dict[str, str], list[str]]:
    run = RunFacts(**({"home": Path("/h"), "base_environment": {}} | facts))  # type: ignore[arg-type]
    adapter = replace(kinds.command(["p"], interactive=False, observe=False), mapping=rules)
    return environment.of(adapter, values, run, Delivery(values, run, types or {}))


def test_a_template_arrives_as_one_json() -> None:
    rule = Rule("metering.base_url", EnvTarget("CONTENT"), JSON)

    env, notices = _of(
        rule, values={"model": '"}', "agent.N": "7"}, types={"agent.N": "integer"}, metering_base_url="u"
    )

    assert {"url": "u", "m": '"}', "n": 7} == json.loads(env["CONTENT"])
    assert [] == notices


def test_a_template_whose_own_key_has_no_value_sets_nothing() -> None:
    env, _ = _of(Rule("metering.base_url", EnvTarget("CONTENT"), JSON), values={"model": "m"})

    assert "CONTENT" not in env


def test_a_text_that_comes_to_nothing_sets_nothing() -> None:
    shape = Shape(format="text", template="${agent.X}")

    assert "T" not in _of(Rule("model", EnvTarget("T"), shape), values={"model": "m"})[0]
    assert "x" == _of(Rule("model", EnvTarget("T"), shape), values={"model": "m", "agent.X": "x"})[0]["T"]


def test_a_template_of_the_engines_key_wins_as_the_key_does() -> None:
    env, notices = _of(
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

    assert "07" == _of(rule, values={"agent.N": "07"}, types={"agent.N": "string"})[0]["M"]
    with pytest.raises(ValueUnfit, match=r"agent\.N"):
        _of(rule, values={"agent.N": "07"}, types={"agent.N": "integer"})


def test_pass_through_takes_references() -> None:
    env, _ = _of(values={"agent.U": "${metering.origin}/x", "agent.V": "$${U}"}, metering_origin="http://h")

    assert ("http://h/x", "${U}") == (env["U"], env["V"])

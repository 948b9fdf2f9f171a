from pathlib import Path

import pytest

from kt_manifest.contract.snapshot import EnvTarget, Rule, Shape
from kt_manifest.launch.delivery import (
    LIMIT_CHAIN,
    LIMIT_CHARS,
    Delivery,
    ReferenceRefused,
    ValueMissing,
    ValueUnfit,
)
from kt_manifest.launch.native.tree import MISSING
from kt_manifest.launch.run_facts import RunFacts

CANARY = "sk-canary-${model}"


def _delivery(
    values: dict[str, str | list[str]], types: dict[str, str] | None = None, **facts: object
) -> Delivery:
    run = RunFacts(**({"home": Path("/h"), "base_environment": {}} | facts))  # type: ignore[arg-type]
    return Delivery(values, run, types or {})


def test_references_between_settings_are_replaced_to_the_end() -> None:
    found = _delivery(
        {"agent.U": "${metering.base_url}/x", "agent.V": "<${agent.U}>", "acp.args": ["${agent.V}", "$${y}"]},
        metering_base_url="http://127.0.0.1:1/t/v1",
    )

    assert "<http://127.0.0.1:1/t/v1/x>" == found.value("agent.V")
    assert ["<http://127.0.0.1:1/t/v1/x>", "${y}"] == found.value("acp.args")
    assert "'<http://127.0.0.1:1/t/v1/x>' '${y}'" == found.text("acp.args")


@pytest.mark.parametrize(
    ("values", "chain", "told"),
    [
        ({"model": "${model}"}, ("model", "model"), "a circle"),
        ({"model": "${agent.A}", "agent.A": "x${model}"}, ("model", "agent.A", "model"), "a circle"),
        ({"model": "${modle}"}, ("model", "modle"), "did you mean model"),
        ({"model": "${agent.A}", "agent.A": "${HOME}"}, ("model", "agent.A", "HOME"), "no setting"),
        ({"model": "${agent.A}"}, ("model", "agent.A"), "no value for agent.A"),
        ({"model": "${agent.A"}, ("model",), "not closed"),
        ({"model": "${metering.base_url}"}, ("model", "metering.base_url"), "no value for metering.base_url"),
    ],
)
def test_what_leads_nowhere_is_refused_by_its_chain(
    values: dict[str, str | list[str]], chain: tuple[str, ...], told: str
) -> None:
    with pytest.raises(ReferenceRefused, match=told) as caught:
        _delivery(values).value("model")

    assert chain == caught.value.chain
    assert " -> ".join(chain) in str(caught.value)
    assert 1 == caught.value.exit_code


def test_a_chain_and_a_text_have_an_end() -> None:
    long = {f"agent.A{number}": f"${{agent.A{number + 1}}}" for number in range(LIMIT_CHAIN + 2)}
    doubling = {f"agent.A{number}": f"${{agent.A{number + 1}}}" * 2 for number in range(30)}

    with pytest.raises(ReferenceRefused, match="too long a chain"):
        _delivery({**long, f"agent.A{LIMIT_CHAIN + 2}": "x"}).value("agent.A0")
    with pytest.raises(ReferenceRefused, match="becomes too long"):
        _delivery({**doubling, "agent.A30": "x" * (LIMIT_CHARS // 1024)}).value("agent.A0")


def test_a_secret_is_final_and_whoever_leads_to_it_is_one() -> None:
    found = _delivery(
        {"agent.K": CANARY, "agent.H": "Bearer ${agent.K}", "agent.I": "${agent.H}", "model": "m"},
        secret_keys=frozenset({"agent.K"}),
    )

    assert f"Bearer {CANARY}" == found.value("agent.I")
    assert [True, True, True, False] == [
        found.is_secret(key) for key in ("agent.K", "agent.H", "agent.I", "model")
    ]
    assert {CANARY, f"Bearer {CANARY}"} == found.secret_texts()
    assert "canary" not in repr(found)


def test_the_listeners_address_makes_secrets_too() -> None:
    found = _delivery({"agent.U": "${metering.origin}/x"}, metering_origin="http://127.0.0.1:1/t")

    assert found.is_secret("agent.U")


def test_engine_keys_are_the_engines_whatever_the_settings_say() -> None:
    found = _delivery(
        {"metering.base_url": "http://evil", "agent.U": "${metering.base_url}"}, metering_base_url="u"
    )

    assert ("u", "u") == (found.value("metering.base_url"), found.value("agent.U"))
    assert _delivery({"metering.base_url": "http://evil"}).value("metering.base_url") is None


def test_a_reference_to_a_secret_by_name_is_not_a_settings() -> None:
    assert "x ${secret:N}" == _delivery({"agent.A": "x ${secret:N}"}).value("agent.A")


def test_types_come_from_the_adapter() -> None:
    found = _delivery({"agent.N": "5"}, {"agent.N": "integer"})

    assert (5, "5", MISSING) == (found.typed("agent.N"), found.text("agent.N"), found.typed("agent.M"))


def test_what_does_not_fit_names_the_key_and_shows_no_secret() -> None:
    with pytest.raises(
        ValueUnfit, match=r'cannot deliver agent.N: got "five", wanted a whole number .*integer'
    ):
        _delivery({"agent.N": "five"}, {"agent.N": "integer"}).typed("agent.N")
    with pytest.raises(ValueUnfit, match=r"got a secret \(not shown\)") as caught:
        _delivery({"agent.N": "five"}, {"agent.N": "integer"}, secret_keys=frozenset({"agent.N"})).typed(
            "agent.N"
        )

    assert ("agent.N", 1) == (caught.value.key, caught.value.exit_code)
    assert "five" not in str(caught.value)


def test_a_template_that_needs_a_value_names_it() -> None:
    rule = Rule("metering.base_url", EnvTarget("X"), Shape(format="json", template='{"m": "x/${model}"}'))
    two = Rule("metering.base_url", EnvTarget("X"), Shape(format="json", template='{"${model}": 1, "m": 2}'))

    with pytest.raises(ValueMissing, match=r"no value for model.*template for metering.base_url.*set model"):
        _delivery({}).filled(rule)
    with pytest.raises(ValueUnfit, match="one name twice"):
        _delivery({"model": "m"}).filled(two)
    assert {"m": "x/gpt"} == _delivery({"model": "gpt"}).filled(rule)

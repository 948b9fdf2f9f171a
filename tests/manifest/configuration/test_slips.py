"""Texts that look like a reference and are none."""

import pytest

from kt_manifest.configuration import layers, settings, slips
from kt_manifest.configuration.layers import Layer


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("secret:", "without a name"),
        ("secret:MY KEY", "a space"),
        ("secret:{A}", "'{' or '}'"),
        ("x ${secret:NAME", "a ${secret: at character 2 that no } closes"),
        ("${secret:A{B}", "that no } closes"),
        ("${secret:}", "without a name"),
        ("${secret:A B}", "a space"),
        ("${nokey}", "nokey"),
        ("${modle}", "did you mean model"),
        ("${}", "no setting"),
        ("$${fine} ${model", "a ${ at character 9 that no } closes"),
    ],
)
def test_each_slip_is_named(text: str, says: str) -> None:
    assert says in (slips.fault(text) or "")
    with pytest.raises(settings.InvalidValue) as refused:
        settings.check("agent.X", text)
    assert 2 == refused.value.exit_code
    assert "$${ for a ${ itself" in str(refused.value)
    [fault] = layers.faults(layers.merge([Layer(layers.INSTANCE, {"agent.X": text})]))
    assert says in str(fault), "also where somebody wrote it by hand"


@pytest.mark.parametrize(
    "text",
    [
        "secret:NAME",
        "Bearer ${secret:NAME}",
        "${model} ${metering.base_url}/x ${agent.OTHER}",
        "$${secret:NAME $${nokey} $${",
        '{"a": "${secret:TOKEN}", "b": {}}',
        "a secret: what else",
        "$NAME {env:X} %X%",
        "",
    ],
)
def test_what_is_none_passes(text: str) -> None:
    assert slips.fault(text) is None
    assert text == settings.check("agent.X", text)


def test_of_a_key_nothing_is_quoted_and_the_gateways_has_no_settings_in_it() -> None:
    told = [
        slips.fault(text, shown=False) or "" for text in ("${canary}", "secret:can ary", "${secret:can ary}")
    ]

    assert all(told)
    assert "can" not in "".join(told)
    assert "sk-${x}" == settings.check("metering.upstream_api_key", "sk-${x}")
    with pytest.raises(settings.InvalidValue):
        settings.check("metering.upstream_api_key", "secret:")
    with pytest.raises(settings.InvalidValue) as refused:
        settings.check("agent.MY_API_KEY", "${canary}")
    assert "canary" not in str(refused.value)


def test_an_item_of_a_list_has_references_inside_alone() -> None:
    assert ["secret:", "x"] == settings.check_stored("acp.args", ["secret:", "x"])
    for items in (["${secret:A"], ["${nokey}"]):
        with pytest.raises(settings.InvalidValue):
            settings.check_stored("acp.args", items)
    with pytest.raises(settings.InvalidValue):
        settings.check("acp.args", "-k ${nokey}")


def test_what_is_never_resolved_may_hold_anything() -> None:
    assert "sh -c 'echo ${HOME}'" == settings.check("hooks.on_start", "sh -c 'echo ${HOME}'")


@pytest.mark.parametrize("name", ["KT_RUN", "KT_INSTANCE", "KT_OTHER"])
def test_the_engines_own_variables_are_nobodys_to_set(name: str) -> None:
    with pytest.raises(settings.InvalidValue, match="the engine's own"):
        settings.check(f"agent.{name}", "x")

    assert "x" == settings.check("agent.MY_KT_RUN", "x")

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kt_manifest.contract import kinds
from kt_manifest.contract.declared_posture import ConfigSwitch, Isolation, Posture, Updates, Version
from kt_manifest.contract.snapshot import Adapter
from kt_manifest.launch import posture
from kt_manifest.launch.posture import Neighbour, SwitchUndeliverable
from kt_manifest.launch.provenance import EnvEntry, Source

HOME = Path("/state/agents/bot")
ISOLATION = Isolation(env={"DATA": "xdg/data", "CONF": "xdg/conf"}, undocumented=("DATA",), validated="1.2.3")
UPDATES = Updates(env={"NO_UPDATE": "1"}, managed_layer=False, verified="1.2.3")
SWITCH = ConfigSwitch(env="CONTENT", key="auto.update", value=False)
WHOLE = Posture(isolation=ISOLATION, updates=UPDATES)


def _adapter(declared: Posture) -> Adapter:
    plain = kinds.command(["prog"], interactive=False, observe=False)
    return replace(plain, posture=declared)


def _told(declared: Posture, installed: str | None, *instances: Neighbour) -> list[tuple[str, str]]:
    found = posture.findings(_adapter(declared), installed, instances=instances)
    return [(one.level, f"{one.section}: {one.text}") for one in found]


def _neighbour(name: str, **env: str) -> Neighbour:
    home = HOME.parent / name
    roots = {"DATA": f"{home}/xdg/data", "CONF": f"{home}/xdg/conf", "NO_UPDATE": "1"}
    return Neighbour(name, home, roots | env)


# -- what is delivered ---------------------------------------------------------------------------------------------
def test_isolation_leads_into_the_agent_home_and_the_switch_is_set() -> None:
    assert posture.entries(WHOLE, HOME) == [
        EnvEntry("DATA", "/state/agents/bot/xdg/data", Source.ISOLATION),
        EnvEntry("CONF", "/state/agents/bot/xdg/conf", Source.ISOLATION),
        EnvEntry("NO_UPDATE", "1", Source.UPDATES),
    ]
    assert ("xdg/data", "xdg/conf") == posture.folders(WHOLE)


def test_nothing_declared_delivers_nothing() -> None:
    nothing = Posture()

    assert ([], (), ()) == (
        posture.entries(nothing, HOME),
        posture.folders(nothing),
        posture.arguments(nothing),
    )
    assert ((), []) == posture.switched(nothing, ())


def test_a_folder_that_two_variables_name_is_made_once() -> None:
    assert ("d",) == posture.folders(Posture(isolation=Isolation(env={"A": "d", "B": "d"})))


def _switched(value: str | None, switch: ConfigSwitch = SWITCH) -> tuple[object, Source, list[str]]:
    held = [] if value is None else [EnvEntry("CONTENT", value, Source.SETTING, "agent.CONTENT")]
    declared = Posture(updates=Updates(config=switch))
    found, told = posture.switched(declared, [EnvEntry("OTHER", "x", Source.INHERITED), *held])
    entries = {entry.name: entry for entry in found}
    assert "x" == entries["OTHER"].value
    return json.loads(entries["CONTENT"].value), entries["CONTENT"].source, told


@pytest.mark.parametrize("value", [None, "", "  "])
def test_without_a_configuration_there_is_one_with_the_switch(value: str | None) -> None:
    assert ({"auto": {"update": False}}, Source.UPDATES, []) == _switched(value)


def test_the_switch_is_put_beside_what_is_there() -> None:
    document, source, told = _switched('{"model": "é", "auto": {"x": 1}}')

    assert {"model": "é", "auto": {"x": 1, "update": False}} == document
    assert (Source.SETTING, []) == (source, told)


@pytest.mark.parametrize("there", ["true", "0", '"false"', "null"])
def test_a_switch_that_says_otherwise_is_replaced_and_that_is_told(there: str) -> None:
    document, _, told = _switched(f'{{"auto": {{"update": {there}}}}}')

    assert {"auto": {"update": False}} == document
    assert ["auto.update in CONTENT is replaced: [kt.updates] sets it (agent.CONTENT)"] == told


def test_a_configuration_that_has_the_switch_is_left_as_it_is() -> None:
    text = '{ "auto" : {"update":false}}'
    entry = EnvEntry("CONTENT", text, Source.SETTING, "agent.CONTENT")

    assert ((entry,), []) == posture.switched(Posture(updates=Updates(config=SWITCH)), [entry])


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ("sk-canary", "no JSON"),
        ("[1]", "JSON that is no object"),
        ('"sk-canary"', "JSON that is no object"),
        ('{"auto": "sk-canary"}', "auto, which is no object"),
        ("[" * 100_000, "no JSON"),
    ],
    ids=range(5),
)
def test_what_takes_no_switch_is_refused_without_its_value(value: str, got: str) -> None:
    with pytest.raises(SwitchUndeliverable) as caught:
        _switched(value)

    assert 1 == caught.value.exit_code
    assert got in caught.value.got
    assert "agent.CONTENT" in str(caught.value)
    assert "canary" not in str(caught.value)


# -- what is found -------------------------------------------------------------------------------------------------
def test_on_the_release_that_it_was_tried_on_there_is_nothing_to_say() -> None:
    assert [] == _told(WHOLE, "1.2.3", _neighbour("a"), _neighbour("b"))


def test_another_release_is_a_warning_for_each_table() -> None:
    told = _told(WHOLE, "1.2.4")

    assert ["warning", "warning"] == [level for level, _ in told]
    assert told[0][1] == (
        "[kt.isolation]: last tried on 1.2.3, and 1.2.4 is installed; try its variables again (undocumented: DATA)"
    )
    assert "[kt.updates]: last tried on 1.2.3, and 1.2.4 is installed" in told[1][1]


def test_a_release_that_nobody_knows_is_not_taken_for_the_right_one() -> None:
    assert all("the installed release is not known" in text for _, text in _told(WHOLE, None))
    assert 2 == len(_told(WHOLE, None))


def test_what_is_not_declared_is_said_to_be_that() -> None:
    told = [text for _, text in _told(Posture(), "1")]

    assert ["[kt.isolation]: it is not declared", "[kt.updates]: it is not declared"] == [
        text.partition(":")[0] + ": it is not declared" for text in told if "it is not declared" in text
    ]


def test_a_declaration_without_a_release_or_a_word_on_managed_layers_is_told() -> None:
    declared = Posture(isolation=Isolation(env={"A": "a"}), updates=Updates(env={"U": "1"}))

    told = [text for _, text in _told(declared, "1")]

    assert ["add validated", "add managed_layer", "add verified"] == [text.split(": ")[-1] for text in told]


def test_an_agent_without_self_update_has_no_managed_layer_to_ask_for() -> None:
    declared = Posture(isolation=ISOLATION, updates=Updates(never=True, verified="1.2.3"))

    assert [] == _told(declared, "1.2.3")


@pytest.mark.parametrize(
    "root",
    ["/state/agents/a/xdg/data", "/state/agents/a/xdg", "/state/agents/a/xdg/data/below", "/state/agents"],
)
def test_two_instances_must_not_share_a_root(root: str) -> None:
    told = _told(WHOLE, "1.2.3", _neighbour("a"), _neighbour("b", DATA=root))

    assert ("error", True) == (told[-1][0], "share the root" in told[-1][1])
    assert "a (" in told[-1][1]
    assert "b (DATA)" in told[-1][1]
    assert ("warning", "[kt.isolation]: DATA of b leads out of its Agent Home") in told


def test_names_that_only_begin_alike_are_no_shared_root() -> None:
    assert [] == _told(WHOLE, "1.2.3", _neighbour("a"), _neighbour("ab"))


@pytest.mark.parametrize(("variable", "said"), [("DATA", "has no DATA"), ("NO_UPDATE", "may update itself")])
def test_what_was_promised_and_is_not_delivered_is_an_error(variable: str, said: str) -> None:
    [(level, text)] = _told(WHOLE, "1.2.3", _neighbour("a", **{variable: ""}))

    assert "error" == level
    assert said in text


def test_a_neighbours_variables_show_in_no_repr() -> None:
    assert "canary" not in repr(_neighbour("a", KEY="canary"))


@pytest.mark.parametrize(
    ("output", "release"),
    [
        ("agent 1.18.33 (abc)\n", "1.18.33"),
        ("warning: x\nagent 2.0\n", "2.0"),
        ("no release", None),
        ("", None),
    ],
)
def test_the_installed_release_is_what_the_group_has(output: str, release: str | None) -> None:
    declared = Posture(version=Version(command=("agent", "--version"), pattern=r"agent ([0-9.]+)"))

    assert release == posture.installed_version(declared, output)
    assert posture.installed_version(Posture(), output) is None

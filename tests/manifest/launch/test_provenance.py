"""Every pair of sources, as a table: who wins a variable, and what is told of who lost it."""

import itertools

import pytest

from kt_manifest.launch import provenance
from kt_manifest.launch.provenance import EnvEntry, Source

ENTRIES = {
    "inherited": EnvEntry("V", "inherited", Source.INHERITED),
    "adapter": EnvEntry("V", "adapter", Source.ADAPTER),
    "isolation": EnvEntry("V", "isolation", Source.ISOLATION),
    "pass-through": EnvEntry("V", "pass-through", Source.SETTING, "agent.V"),
    "mapped": EnvEntry("V", "mapped", Source.SETTING, "model"),
    "delivered": EnvEntry("V", "delivered", Source.ENGINE, "metering.base_url"),
    "updates": EnvEntry("V", "updates", Source.UPDATES),
    "engine": EnvEntry("V", "engine", Source.ENGINE),
}
BY = {
    "adapter": "[lifecycle.start] env",
    "isolation": "[kt.isolation]",
    "pass-through": "agent.V",
    "mapped": "model",
    "delivered": "metering.base_url",
    "updates": "[kt.updates]",
    "engine": "the engine",
}
LOST = {
    "inherited": "V of the caller's environment is replaced: {} sets it",
    "adapter": "V of the adapter's environment is replaced: {} sets it",
    "isolation": "V does not lead to its folder in the Agent Home: {} sets it",
    "pass-through": "agent.V is not delivered: {} sets V",
    "mapped": "model is not delivered: {} sets V",
    "delivered": "metering.base_url is not delivered: {} sets V",
    "updates": "V, which switches self-update off, is replaced: {} sets it",
}
PAIRS = list(itertools.combinations(ENTRIES, 2))
NOT_TOLD = {("inherited", "adapter"), ("inherited", "pass-through"), ("adapter", "pass-through")}


def test_the_table_names_every_source() -> None:
    assert set(ENTRIES) == set(provenance.STRENGTH)
    assert list(ENTRIES) == sorted(ENTRIES, key=provenance.STRENGTH.__getitem__)
    assert 28 == len(PAIRS)
    assert set(Source) == {entry.source for entry in ENTRIES.values()}


@pytest.mark.parametrize(("weaker", "stronger"), PAIRS)
@pytest.mark.parametrize("turned", [False, True])
def test_of_two_the_stronger_wins_and_the_loss_is_told(weaker: str, stronger: str, turned: bool) -> None:
    pair = [ENTRIES[weaker], ENTRIES[stronger]]

    winners, told = provenance.compose(reversed(pair) if turned else pair)

    assert (ENTRIES[stronger],) == winners
    expected = [] if (weaker, stronger) in NOT_TOLD else [LOST[weaker].format(BY[stronger])]
    assert expected == told


@pytest.mark.parametrize(("weaker", "stronger"), PAIRS)
def test_the_same_value_is_worth_no_word(weaker: str, stronger: str) -> None:
    one, other = ENTRIES[weaker], ENTRIES[stronger]
    same = EnvEntry(one.name, other.value, one.source, one.key)

    assert ((other,), []) == provenance.compose([same, other])


def test_everybody_who_lost_is_told_of_once() -> None:
    _, told = provenance.compose(ENTRIES.values())

    assert [LOST[name].format("the engine") for name in reversed(list(LOST))] == told


def test_no_value_shows_in_a_repr() -> None:
    assert "canary" not in repr(EnvEntry("V", "canary", Source.SETTING, "agent.V"))


def test_each_variable_is_judged_by_itself() -> None:
    winners, told = provenance.compose(
        [EnvEntry("A", "1", Source.INHERITED), EnvEntry("B", "2", Source.SETTING, "model")]
    )

    assert {"A": "1", "B": "2"} == {entry.name: entry.value for entry in winners}
    assert [] == told

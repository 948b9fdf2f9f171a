import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_manifest.contract import declared_posture
from kt_manifest.contract.declared_posture import ConfigSwitch, Isolation, Posture, Updates, Version

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
TABLES = st.dictionaries(TEXT, TEXT, max_size=2)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
POSTURES = st.builds(
    Posture,
    substitution=TEXTS,
    isolation=st.none() | st.builds(Isolation, env=TABLES, undocumented=TEXTS, validated=st.none() | TEXT),
    updates=st.none()
    | st.builds(
        Updates,
        never=st.booleans(),
        env=TABLES,
        args=TEXTS,
        config=st.none()
        | st.builds(ConfigSwitch, env=TEXT, key=TEXT, value=TEXT | st.booleans() | st.integers()),
        switch=st.none() | TEXT,
        managed_layer=st.none() | st.booleans() | TEXT,
        verified=st.none() | TEXT,
    ),
    version=st.none() | st.builds(Version, command=TEXTS, pattern=TEXT),
)


@given(POSTURES)
def test_every_posture_comes_back_from_its_json(posture: Posture) -> None:
    text = json.dumps(posture.to_json())

    assert posture == Posture.from_json(json.loads(text))


def test_nothing_declared_writes_nothing() -> None:
    assert {} == declared_posture.NOTHING.to_json()
    assert declared_posture.NOTHING == Posture.from_json({})


def test_false_and_not_said_stay_apart() -> None:
    said = [
        Posture.from_json(Posture(updates=Updates(never=True, managed_layer=layer)).to_json()).updates
        for layer in (None, False, True, "by MDM")
    ]

    assert [None, False, True, "by MDM"] == [updates.managed_layer for updates in said if updates]


@pytest.mark.parametrize(
    "facts",
    [
        {"substitution": "x"},
        {"substitution": [1]},
        {"isolation": {}},
        {"isolation": {"env": {"A": 1}}},
        {"isolation": {"env": []}},
        {"updates": {"env": {"A": 1}}},
        {"updates": {"config": {"env": "A", "key": "b", "value": [1]}}},
        {"updates": {"config": {"env": "A", "key": "b"}}},
        {"updates": {"managed_layer": 3}},
        {"version": {"command": "x", "pattern": "y"}},
        {"version": {"command": ["x"]}},
    ],
    ids=range(11),
)
def test_a_damaged_part_is_no_posture(facts: object) -> None:
    with pytest.raises((TypeError, KeyError, AttributeError)):
        Posture.from_json(facts)  # type: ignore[arg-type]

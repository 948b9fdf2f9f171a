import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_manifest.configuration import layers, settings
from kt_manifest.configuration.layers import Entry, Layer


def test_the_strongest_layer_wins_key_by_key_whatever_the_order_given() -> None:
    given = [
        Layer("engine-default", {"a": "0", "b": "0", "c": "0", "d": "0", "e": "0"}),
        Layer("kind-default", {"b": "1", "c": "1", "d": "1", "e": "1"}),
        Layer("fleet", {"c": "2", "d": "2", "e": "2"}, Path("/state/config.toml")),
        Layer("instance", {"d": "3", "e": "3", "agent.X": "x"}, Path("/home/config.toml")),
        Layer("invocation-override", {"e": "4"}),
    ]
    expected = [
        ("a", "0", "engine-default", False, None, []),
        ("agent.X", "x", "instance", True, Path("/home/config.toml"), []),
        ("b", "1", "kind-default", False, None, ["engine-default"]),
        ("c", "2", "fleet", False, Path("/state/config.toml"), ["kind-default", "engine-default"]),
        (
            "d",
            "3",
            "instance",
            False,
            Path("/home/config.toml"),
            ["fleet", "kind-default", "engine-default"],
        ),
        (
            "e",
            "4",
            "invocation-override",
            False,
            None,
            ["instance", "fleet", "kind-default", "engine-default"],
        ),
    ]

    for order in itertools.permutations(given):
        assert expected == [_told(entry) for entry in layers.merge(order)]


def _told(entry: Entry) -> tuple[object, ...]:
    sources = [hidden.source for hidden in entry.hides]
    return entry.key, entry.value, entry.source, entry.unvalidated, entry.file, sources


NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=3)
ANY_LAYERS = st.lists(
    st.dictionaries(NAMES.map(".".join), st.text("xyz", max_size=2), max_size=6).map(
        # one file has no value below another value
        lambda values: {
            key: value for key, value in values.items() if not set(layers.ancestors(key)) & set(values)
        }
    ),
    min_size=len(layers.STRENGTH),
    max_size=len(layers.STRENGTH),
)


@given(ANY_LAYERS)
def test_merging_is_what_trees_do_that_are_laid_over_each_other(values: list[dict[str, str]]) -> None:
    tree: dict[str, Any] = {}
    for layer in values:
        for key, value in layer.items():
            node = tree
            *above, last = key.split(".")
            for name in above:
                if not isinstance(node.get(name), dict):
                    node[name] = {}
                node = node[name]
            node[last] = value
        _without_empty(tree)

    merged = layers.merge([Layer(name, given) for name, given in zip(layers.STRENGTH, values, strict=True)])

    assert dict(_flat(tree)) == {entry.key: entry.value for entry in merged}


@given(ANY_LAYERS)
def test_every_value_that_was_given_is_in_force_or_hidden_once_by_a_stronger_one(
    values: list[dict[str, str]],
) -> None:
    by_name = dict(zip(layers.STRENGTH, values, strict=True))

    merged = layers.merge([Layer(name, given) for name, given in by_name.items()])

    given = sorted((name, key, value) for name, layer in by_name.items() for key, value in layer.items())
    told = [(entry.source, entry.key, entry.value) for entry in merged]
    told += [(hidden.source, hidden.key, hidden.value) for entry in merged for hidden in entry.hides]
    assert given == sorted(told)
    for entry in merged:
        strengths = [layers.STRENGTH.index(hidden.source) for hidden in entry.hides]
        assert all(strength < layers.STRENGTH.index(entry.source) for strength in strengths)


def _without_empty(tree: dict[str, Any]) -> None:
    for name, below in list(tree.items()):
        if isinstance(below, dict):
            _without_empty(below)
            if not below:
                del tree[name]


def _flat(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, below in tree.items():
        if isinstance(below, dict):
            yield from _flat(below, f"{prefix}{name}.")
        else:
            yield prefix + name, below


def test_a_stronger_value_prunes_what_stood_below_it() -> None:
    merged = layers.merge(
        [Layer("kind-default", {"agent.A.B": "1", "agent.AB": "1"}), Layer("instance", {"agent.A": "2"})]
    )

    assert [(entry.key, entry.value) for entry in merged] == [("agent.A", "2"), ("agent.AB", "1")]


def test_a_stronger_table_prunes_the_value_above_it() -> None:
    merged = layers.merge([Layer("kind-default", {"agent.A": "1"}), Layer("instance", {"agent.A.B.C": "2"})])

    assert [(entry.key, entry.value) for entry in merged] == [("agent.A.B.C", "2")]


def test_a_layer_of_no_known_name_is_a_mistake() -> None:
    with pytest.raises(ValueError):
        layers.merge([Layer("user")])


def test_the_defaults_are_those_that_take_effect() -> None:
    defaults = layers.engine_default().values

    assert ("token", "on-failure", "300") == tuple(
        defaults[key] for key in ("metering.listener_auth", "restart.policy", "pause.hold_s")
    )
    assert "budget.breach_action" not in defaults


def test_what_was_written_by_hand_is_checked_and_what_the_engine_wrote_is_not() -> None:
    merged = layers.merge(
        [
            layers.engine_default(),
            Layer(
                "instance", {"model": "m", "metering.upstream_base_url": "http://h/v1/", "acp.args": ["x"]}
            ),
            Layer("invocation-override", {"metering.base_url": "http://127.0.0.1:1/t/v1"}),
        ]
    )

    assert layers.effective(merged) == layers.engine_default().values | {
        "acp.args": ["x"],
        "metering.base_url": "http://127.0.0.1:1/t/v1",
        "metering.upstream_base_url": "http://h/v1",
        "model": "m",
    }


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        ("budget.tokens.per_run", "5", settings.NotEnforcedYet),
        ("budget.tokens.per_run", "5.5", settings.InvalidValue),
        ("metering.base_url", "http://evil", settings.ReservedKey),
        ("memory.dir", "/elsewhere", settings.ReservedKey),
        ("modle", "x", settings.UnknownKey),
        ("metering.upstream_base_url", "h", settings.InvalidValue),
    ],
)
def test_nothing_written_by_hand_is_silently_ignored(key: str, value: str, error: type[Exception]) -> None:
    for name in ("kind-default", "fleet", "instance"):
        entries = layers.merge([layers.engine_default(), Layer(name, {key: value}, Path("/f/config.toml"))])

        with pytest.raises(layers.LayerFault) as refused:
            layers.effective(entries)
        values, faults = layers.usable(entries)

        assert isinstance(refused.value.error, error)
        assert getattr(refused.value.error, "exit_code", None) == refused.value.exit_code
        assert f"it stands in /f/config.toml ({name})" in str(refused.value)
        assert [str(refused.value)] == [str(fault) for fault in faults]
        assert layers.engine_default().values == values


def test_thousands_of_keys_are_merged_at_once() -> None:
    many = {f"agent.K{number}.x": "v" for number in range(20_000)}
    begun = time.process_time()

    merged = layers.merge([Layer("kind-default", many), Layer("instance", many)])

    assert len(merged) == 20_000
    assert time.process_time() - begun < 5


def test_a_tables_children_are_the_keys_below_it_in_order() -> None:
    merged = layers.merge(
        [Layer("instance", {"agent.B": "1", "agent.A.C": "1", "agent2.D": "1", "agent": "0"})]
    )

    assert layers.children(merged, "agent") == ["agent.A.C", "agent.B"]
    assert layers.children(merged, "model") == []

import itertools
import time

import pytest

from kt_manifest.configuration import layers, settings
from kt_manifest.configuration.layers import Entry, Layer


def test_the_strongest_layer_wins_key_by_key_whatever_the_order_given() -> None:
    given = [
        Layer("engine-default", {"a": "0", "b": "0", "c": "0", "d": "0"}),
        Layer("kind-default", {"b": "1", "c": "1", "d": "1"}),
        Layer("instance", {"c": "2", "d": "2", "agent.X": "x"}),
        Layer("invocation-override", {"d": "3"}),
    ]
    expected = [
        Entry("a", "0", "engine-default", False),
        Entry("agent.X", "x", "instance", True),
        Entry("b", "1", "kind-default", False),
        Entry("c", "2", "instance", False),
        Entry("d", "3", "invocation-override", False),
    ]

    for order in itertools.permutations(given):
        assert expected == layers.merge(order)


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
    with pytest.raises(error):
        layers.effective(layers.merge([Layer("instance", {key: value})]))


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

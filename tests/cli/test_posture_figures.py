from typing import Any

import pytest

from kt_cli import posture_figures

UPDATES: dict[str, Any] = {
    "never": False,
    "env": {"NO_UPDATE": "1"},
    "args": ["-c", "a b"],
    "config": {"env": "CONTENT", "key": "auto.update", "value": False},
    "switch": "three ways",
    "managed_layer": None,
    "verified": "1.2",
}
ISOLATION: dict[str, Any] = {"directories": {"A": "a/b", "B": "b"}, "undocumented": ["B"], "validated": "1.2"}


def _rows(**parts: Any) -> dict[str, str]:
    nothing = {"isolation": None, "updates": None, "substitution": None, "version": None}
    return dict(posture_figures.rows(nothing | parts))


@pytest.mark.parametrize("posture", [None, "x", []])
def test_without_a_posture_there_are_no_rows(posture: Any) -> None:
    assert [] == posture_figures.rows(posture)


def test_what_nobody_declared_is_said_to_be_that() -> None:
    rows = _rows()

    assert ["Isolation", "Self-update"] == list(rows)
    assert all(text.startswith("not declared: ") for text in rows.values())


def test_everything_that_is_declared_is_written() -> None:
    rows = _rows(isolation=ISOLATION, updates=UPDATES, substitution=["{env:VAR}"])

    assert rows == {
        "Isolation": "A = a/b, B = b (in the Agent Home)",
        "Undocumented levers": "B: to be tried again with each release",
        "Isolation last tried on": "1.2",
        "Self-update": "switched off by NO_UPDATE=1, -c 'a b', auto.update = false in CONTENT (last tried on 1.2); "
        "three ways",
        "Managed layer": "— (nobody says whether one can override the switch)",
        "Placeholders": "{env:VAR}: each needs a variable with a value, or it does not start",
    }


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (True, "can override the switch"),
        (False, "cannot override the switch"),
        ("an MDM profile can", "an MDM profile can"),
    ],
)
def test_whether_a_managed_layer_can_override_it_is_said(layer: Any, words: str) -> None:
    assert words == _rows(updates=UPDATES | {"managed_layer": layer})["Managed layer"]


def test_an_agent_that_does_not_update_itself_has_one_row() -> None:
    rows = _rows(
        isolation=ISOLATION | {"validated": None, "undocumented": []},
        updates=UPDATES | {"never": True, "verified": None},
    )

    assert "the agent has none (nobody says when that was last tried)" == rows["Self-update"]
    assert "Managed layer" not in rows
    assert "— (nobody says)" == rows["Isolation last tried on"]


def test_nothing_that_an_adapter_says_reaches_the_screen_as_a_control_sequence() -> None:
    rows = _rows(updates=UPDATES | {"switch": "\x1b[31m"})

    assert "\x1b" not in "".join(rows.values())

import datetime

import pytest

from kt_manifest import words


@pytest.mark.parametrize("name", ["A", "a.b", "A-B", "_", "é", "FOO_1", "%"])
def test_environment_names_may_be_nearly_anything(name: str) -> None:
    assert words.fault_in_environment_name(name) is None


@pytest.mark.parametrize("name", ["", "A=B", "=", "A B", "A\n", "A\0", "\x1b", "\ud800", "\u2028"])
def test_environment_names_that_the_system_cannot_carry_or_people_cannot_see(name: str) -> None:
    assert words.fault_in_environment_name(name)


def test_values_carry_everything_but_nul_and_half_characters() -> None:
    assert words.fault_in_value("a\nb\tc é 🙂 =") is None
    assert "NUL" in str(words.fault_in_value("a\0b"))
    assert "surrogate" in str(words.fault_in_value("\ud800"))


def test_shown_names_cannot_play_with_a_terminal() -> None:
    assert words.fault_in_shown_name("My Agent 🧑‍🚀 ñ") is None
    assert words.fault_in_shown_name("a\x1b[2J")
    assert words.fault_in_shown_name("a\nb")
    assert words.fault_in_shown_name("a\u202eb")
    assert words.fault_in_shown_name("\ud800")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'),
        ('a"\\\n\x1b\ud800', '"a\\"\\\\\\n\\x1b\\ud800"'),
        ("x" * 81, '"' + "x" * 79 + '…"'),
        (True, "true (a boolean)"),
        (3, "3 (an integer)"),
        (10**5000, "a huge integer"),
        (1.5, "1.5 (a float)"),
        ({"a": 1}, "a table"),
        ([1], "an array"),
        (datetime.date(2026, 1, 1), "a date"),
    ],
    ids=range(10),
)
def test_any_value_is_shown_in_one_short_line(value: object, text: str) -> None:
    assert text == words.shown(value)


def test_a_path_is_shown_whole() -> None:
    assert words.shown_path("/a\n" + "b" * 200) == "/a\\n" + "b" * 200

import pytest

from kt_cli import terminal


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("tab\tstays", "tab\tstays"),
        ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m\x1b[0m"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]52;c;Zm9v\x1b\\text", "text"),
        ("\x1bPq#0\x1b\\text", "text"),
        ("\x9b2Jtext", "text"),
        ("a\rb\x08c\x00", "abc"),
        ("\u202eturned", "turned"),
        ("\x1b", ""),
        ("\x1b]0;never ends", ""),
        ("ünïcode 漢字", "ünïcode 漢字"),
    ],
)
def test_only_colours_and_text_reach_a_terminal(text: str, expected: str) -> None:
    assert expected == terminal.log_line(text, colour=True)


def test_without_colour_not_even_colours_do() -> None:
    assert "red" == terminal.log_line("\x1b[31mred\x1b[0m", colour=False)


def test_output_that_is_no_terminal_gets_no_colour() -> None:
    assert "running" == terminal.coloured("running", "green")


def test_a_lone_surrogate_is_written_out() -> None:
    assert "a\\udcff" == terminal.visible("a\udcff")

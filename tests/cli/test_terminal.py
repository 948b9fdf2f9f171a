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


def test_a_stream_keeps_its_lines_and_colours_and_an_escape_that_is_cut_waits() -> None:
    whole = "a\x1b[2Jb\r\n\x1b[31mred\x1b[0m\rover\x07\n"
    shown, held = [], ""

    for char in whole:
        text, held = terminal.split_escape(held + char)
        shown.append(terminal.stream(text, colour=True))

    assert ("ab\r\n\x1b[31mred\x1b[0m\rover\n", "") == ("".join(shown), held)
    assert ("x", "\x1b[3") == terminal.split_escape("x\x1b[3")
    assert ("\x1b]" + "y" * 5000, "") == terminal.split_escape("\x1b]" + "y" * 5000)

import pytest

from kt_cli import table, terminal

TITLES = ("Name", "Usage", "Home")


def test_a_table_that_fits_is_as_wide_as_its_cells() -> None:
    text = table.render(TITLES, [["bot", "in 1 / out 2", "agents/bot"]], width=80)

    assert [
        "Name  Usage         Home",
        "────  ────────────  ──────────",
        "bot   in 1 / out 2  agents/bot",
    ] == text.splitlines()


@pytest.mark.parametrize("width", [80, 60, 40, 30])
def test_no_line_is_wider_than_the_screen_and_nothing_is_lost(width: int) -> None:
    row = ["a-name-of-an-agent", "≥ in 12,345,678 / out 9,876,543 (+3 unmeasured calls)", "x" * 300]

    text = table.render(TITLES, [row], width=width)

    assert width >= max(map(terminal.columns, text.splitlines()))
    assert 300 == text.count("x")
    for char in set("".join(row)) - {" "}:
        assert "".join(row).count(char) <= text.count(char)


def test_words_stay_whole_while_there_is_room() -> None:
    assert ["in 12,345 /", "out 678"] == table.wrap("in 12,345 / out 678", 12)


def test_a_word_that_is_too_long_is_broken() -> None:
    assert ["abc", "def", "g", "hi"] == table.wrap("abcdefg hi", 3)


def test_wide_characters_take_two_columns() -> None:
    text = table.render(("A", "B"), [["漢字", "x"]], width=80)

    assert "漢字  x" == text.splitlines()[2]


def test_an_address_is_broken_between_whole_segments_only() -> None:
    address = "http://127.0.0.1:40001/token/v1"

    assert ["http://127.0.0.1:40001/", "token/v1"] == table.wrap(address, 24)
    assert ["see", address, "now"] == table.sentence(f"see {address} now", 12)
    assert ["a b", "c"] == table.sentence("a b c", 3)


def test_what_is_piped_is_as_wide_as_it_takes() -> None:
    path = "/very" * 100

    assert f"Key  {path}" == table.fields([("Key", path)], width=terminal.UNBOUNDED)
    assert path == table.render(("A",), [[path]], width=terminal.UNBOUNDED).splitlines()[2]
    assert [path] == table.sentence(path, terminal.UNBOUNDED)


def test_a_control_character_in_a_cell_cannot_reach_the_screen() -> None:
    text = table.render(("A",), [["\x1b[2Jboo\r\n\u202e"]], width=80)

    assert "\\x1b[2Jboo\\r\\n\\u202e" == text.splitlines()[2]


def test_fields_wrap_below_their_value() -> None:
    assert ["Key  aaa", "     bbb"] == table.fields([("Key", "aaa bbb")], width=9).splitlines()

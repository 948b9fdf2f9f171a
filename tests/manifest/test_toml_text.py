import os
import time
from pathlib import Path

import pytest

from kt_manifest import toml_text


def _read(path: Path) -> bytes:
    with toml_text.opened(path) as descriptor:
        return toml_text.read(descriptor)


def test_a_file_of_just_the_limit_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"#" * toml_text.LIMIT_BYTES)
    assert len(_read(file)) == toml_text.LIMIT_BYTES

    file.write_bytes(b"#" * (toml_text.LIMIT_BYTES + 1))
    with pytest.raises(toml_text.TooLarge, match="256 KiB"):
        _read(file)


def test_an_empty_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")

    assert _read(tmp_path / "f") == b""


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    (tmp_path / "l").symlink_to("f")

    assert _read(tmp_path / "l") == b"x"


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")

    for path, kind in (
        (tmp_path / "fifo", "a FIFO"),
        (tmp_path, "a directory"),
        (Path("/dev/null"), "a device"),
    ):
        with pytest.raises(toml_text.NotARegularFile, match=kind):
            _read(path)


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "f").write_bytes(b"x")
    before = len(list(Path("/dev/fd").iterdir()))

    for name in ("fifo", "f", "missing"):
        try:
            _read(tmp_path / name)
        except OSError:
            pass

    assert before == len(list(Path("/dev/fd").iterdir()))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = = 2", 2),
        ("\n\na = '", 3),
        ("a = 1\na = 2\n", 2),
        ("a = " + "[" * 9999, 1),
        ("x = " + "1" * 9999, 1),
    ],
    ids=range(5),
)
def test_what_is_no_toml_says_in_which_line(text: str, line: int) -> None:
    with pytest.raises(toml_text.NotToml) as caught:
        toml_text.parse(text)

    assert line == caught.value.line
    assert "at line" not in caught.value.reason


def test_bytes_that_are_not_utf_8_say_in_which_line() -> None:
    with pytest.raises(toml_text.NotToml) as caught:
        toml_text.decode(b"a = 1\nb = '\xe9'\n")

    assert caught.value.line == 2


def test_a_byte_order_mark_is_tolerated() -> None:
    assert toml_text.parse(toml_text.decode(b"\xef\xbb\xbfa = 1")) == {"a": 1}


def test_the_worst_text_within_the_limits_is_parsed_in_bounded_time() -> None:
    line = ".".join("a" * 990)
    text = "".join(f"{line}.b{number} = 1\n" for number in range(5))
    keys = "".join(f"k{number} = 1\n" for number in range(toml_text.LIMIT_MARKS // 2))
    begun = time.process_time()

    toml_text.parse(text)
    toml_text.parse(keys)

    # Meant is less than 1 s for each; the same number of bytes without the limits takes minutes.
    assert time.process_time() - begun < 6


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{'.'.join('a' * 990)}.b{number} = 1\n" for number in range(9)),
        "[" + ".".join("a" * 900) + "]\n" + "a = [\n[1.5, 1.5]]\n" * 5000,
        "a = [" + "1, " * toml_text.LIMIT_MARKS + "]",
        "#\n" * (toml_text.LIMIT_MARKS + 1),
    ],
    ids=["dots", "below a long header", "items", "lines"],
)
def test_what_would_take_long_is_refused_unparsed(text: str) -> None:
    with pytest.raises(toml_text.NotToml, match="more "):
        toml_text.parse(text)


def test_dots_and_commas_of_texts_and_comments_do_not_count() -> None:
    prose = "a.b, c = d. " * 5000

    for text in (f'a = "{prose}"', f"a = '{prose}'", f'a = """{prose}"""', f"a = 1 # {prose}"):
        assert {"a"} == toml_text.parse(text).keys()


def test_a_long_list_of_open_texts_is_refused_in_bounded_time() -> None:
    begun = time.process_time()

    with pytest.raises(toml_text.NotToml):
        toml_text.parse('a = """' + '\\"""' * 50_000)

    assert time.process_time() - begun < 3


def test_a_line_with_more_dots_than_any_key_needs_is_refused_unparsed() -> None:
    with pytest.raises(toml_text.NotToml, match="dots") as caught:
        toml_text.parse("a = 1\n" + ".".join("a" * 100_000) + " = 1")

    assert caught.value.line == 2

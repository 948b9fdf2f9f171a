import subprocess

import pytest
from hypothesis import given, settings
from tests.manifest.launch.native import documents

from kt_manifest.launch.native import env_file
from kt_manifest.launch.native.unreadable import Uneditable, Unreadable


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=1", "1"),
        ("  export A = x y # no", "x y"),
        ("A=", ""),
        ("A=#x", ""),
        ("A=x#y", "x#y"),
        ("A='$x \\n'", "$x \\n"),
        ('A="x\\n\\"\\$\\\\" # no', 'x\n"$\\'),
        ('A="two\nlines"', "two\nlines"),
    ],
)
def test_values_are_read_as_others_read_them(line: str, value: str) -> None:
    assert {"A": value} == env_file.read(f"# c\n\n{line}\n")


@settings(max_examples=100, deadline=None)
@given(documents.ENV_TEXTS)
def test_whatever_the_value_it_reads_back_the_same(value: str) -> None:
    assert {"A": value} == env_file.read(env_file.write({"A": value}))


def test_a_shell_reads_the_same_unless_there_is_a_line_end() -> None:
    """The strictest of the readers; what it takes in double quotes it does not turn into a line end."""
    values = ["plain/1.2:3", "two words", "$HOME `id` \\n", 'it\'s $HOME "q" \\ `x`', "é😀", ""]
    text = env_file.write({f"V{number}": value for number, value in enumerate(values)})
    script = f"{text}printf '%s\\n' " + " ".join(f'"$V{number}"' for number in range(len(values)))

    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=True)

    assert values == done.stdout.split("\n")[:-1]


def test_only_the_line_of_the_name_changes() -> None:
    text = "# c\r\nexport A = 'x' # why\r\nB=2"

    assert text.replace("'x'", "y") == env_file.put(text, ("A",), "y")
    assert text + "\r\nC='a b'\r\n" == env_file.put(text, ("C",), "a b")
    assert "# c\r\nB=2" == env_file.remove(text, ("A",))
    assert text == env_file.restore(env_file.put(text, ("A",), "y"), ("A",), text)


def test_of_a_name_that_stands_twice_the_later_counts() -> None:
    assert {"A": "2"} == env_file.read("A=1\nA=2\n")
    assert "A=1\nA=3\n" == env_file.put("A=1\nA=2\n", ("A",), "3")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("A=1\nnothing\n", 2, "something else than NAME=value"),
        ("A=1\n\nB='x\ny\n", 3, "a quote that is never closed"),
        ("A='x'y\n", 1, "text behind a closing quote"),
        ("1A=x\n", 1, "something else"),
    ],
)
def test_what_is_no_assignment_is_named_by_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason) as caught:
        env_file.read(text)

    assert line == caught.value.line


def test_a_value_that_is_no_text_is_refused() -> None:
    with pytest.raises(Uneditable, match="no text"):
        env_file.write({"A": 1})

"""What an agent may have written into a file of its own is read, or refused, in less than a second of processor."""

import time
from collections.abc import Callable

import pytest

from kt_manifest.launch.native import document
from kt_manifest.launch.native.unreadable import Unreadable

LIMIT = 4 * 1024 * 1024
TRIED_S = 3.0
"""Three times what is meant, since other work shares the processor; without the bounds most took 10 s to minutes."""
HEADER = "[" + ".".join("a" * 900) + "]\n"
HOSTILE: dict[str, list[str]] = {
    "toml": [
        ".".join(["a"] * 16_000) + " = 1\n",
        ".".join(['"a"'] * 16_000) + " = 1\n",
        HEADER + "".join(f"k{number} = 1\n" for number in range(15_000)),
        "".join(f"a{number}{'.a' * 990} = 1\n" for number in range(1000)),
        "a = [" + "1," * (LIMIT // 2 - 10) + "]\n",
        "a = [" + "1," * 100_000 + "]\n",
        "".join(f"k{number} = 1\n" for number in range(80_000)),
        "".join(f"[t.t{number}]\n" for number in range(90_000)),
        "[[a]]\n" * 250_000,
        "#\n" * 700_000,
        'a = """' + '\\"""' * 300_000,
        "a = " + "[" * 1_000_000,
    ],
    "json": [
        '{"a": [' + "1," * (LIMIT // 2 - 10) + "1]}",
        '{"a":' * 600_000,
        '{"a": ' + "1" * LIMIT + "}",
        "{" + ",".join(f'"k{number}":1' for number in range(330_000)) + "}",
    ],
    "yaml": [
        "".join(f"k{number}: 1\n" for number in range(330_000)),
        "a: [" + "1," * (LIMIT // 2 - 10) + "]",
        "{" * 100_000,
        "[" * LIMIT,
        "- " * 1_000_000,
        "-\n" * (LIMIT // 2),
        "#\n" * (LIMIT // 2),
        "a: " + "x " * (LIMIT // 2 - 10),
        'a: "' + "\n" * (LIMIT - 10) + '"',
        "? a\n" * 1_000_000,
        "a: [" + ("[" * 80 + "]" * 80 + ",") * 20_000 + "]",
    ],
    "env": [
        "A=1\n" * (LIMIT // 4),
        'A="\\n"\n' * (LIMIT // 7),
        "A='\n'\n" * (LIMIT // 6),
        "#\n" * (LIMIT // 2),
        "A=" + "x " * (LIMIT // 2),
        'A="' + "\\\\" * (LIMIT // 2) + '"',
        'A="' + "x" * LIMIT,
        "A=1\n" * 49_000 + "x",
    ],
}
CASES = [(format_, number) for format_, texts in HOSTILE.items() for number in range(len(texts))]


def took_s(what: Callable[[], object]) -> float:
    before = time.process_time()
    try:
        what()
    except Unreadable:
        pass  # in a sentence, and in time
    return time.process_time() - before


@pytest.mark.parametrize(("format_", "number"), CASES)
def test_a_hostile_file_is_read_or_refused_in_bounded_time(format_: str, number: int) -> None:
    text = HOSTILE[format_][number]

    assert took_s(lambda: document.values(format_, text, [("a",)])) < TRIED_S


@pytest.mark.parametrize("format_", ["toml", "yaml", "env", "json"])
def test_a_file_at_the_bounds_is_edited_in_bounded_time(format_: str) -> None:
    keys = 3000
    line = {"toml": "k{} = 1\n", "yaml": "k{}: 1\n", "env": "k{}=1\n", "json": '"k{}": 1,\n'}[format_]
    text = "".join(line.format(number) for number in range(keys))
    text = "{" + text.rstrip(",\n") + "}" if format_ == "json" else text

    before = time.process_time()
    merged = document.merge(format_, text, [(("mine",), "x")])

    assert time.process_time() - before < 4 * TRIED_S
    assert {("mine",): "x"} == document.values(format_, merged, [("mine",)])


def test_dots_and_marks_within_texts_and_comments_do_not_count() -> None:
    prose = "a.b, c = d. " * 20_000

    assert {("a",): prose} == document.values("toml", f'# {prose}\na = "{prose}"\n', [("a",)])

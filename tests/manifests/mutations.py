"""Inputs for a judge of manifests: what a corpus becomes by small changes, some of which know what TOML is.

Every input follows from a seed and a number, so that one that fails can be made again by itself.
"""

import random
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
LONGEST_BYTES = 20_000
"""What an input may grow to; the limits for larger ones are tests of their own."""

HEADERS = rb"""
[adapter] [lifecycle] [lifecycle.start] [lifecycle.stop] [capabilities] [capabilities.pause] [capabilities.interaction]
[metering] [interaction] [config] [config.model] [config.a.b] [config."a.b"] [config.""] [[config]] [[config.model]]
[kt] [kt.ready] [kt.send] [kt.x] [kt.config."model"] [kt.isolation] [kt.updates] [kt.substitution] [kt.defaults]
[kt.version] [kt.test] [kt.test.reports] [kt.config."agent.A"] [kt.updates.config] [kt.dispatch] [] [[]] [a.] ["\u0000"]
""".split()
KEYS = rb"""
contract_version kind name exec args env linux macos windows source channel env flag file path key line stream port http
command deadline_s url start pause ready format merge template type syntax undocumented validated never switch value
managed_layer verified config pattern say settings stream crash dump ends reports input_tokens XDG_HOME
"" "a.b" a.b x "\u0000"
""".split()
_VALUES = rb"""
1 | -1 | 0 | 65536 | 1.5 | nan | inf | -inf | 1e400 | true | false | 1979-05-27 | 07:32:00 | 1979-05-27T07:32:00+23:59
[] | [[]] | {} | { path = "a", key = "b" } | { path = "../a", key = "" } | "" | "x" | 'x' | ["a", "b"] | ["a", 1] | [{}]
"1.0.0" | "2.0.0" | "1.0.0-rc.1" | " 1.0.0 " | "1" | "v1.0.0" | "guaranteed" | "best-effort" | "unsupported"
"Guaranteed" | "mock" | "self-reported" | "engine-observed" | "stdio" | "http" | "/a" | "./a" | 'C:\a' | "a\u0000"
"a\u001b" | "\ud800" | "(a+)+$" | "(a)\\1" | ".*" | "a{1000}{1000}" | "${PORT}" | "http://127.0.0.1:1/"
"json" | "yaml" | "env" | "text" | "toml" | "integer" | '{"a": "${model}"}' | '${model}' | '[${x}]' | "$${a"
["{env:VAR}"] | ["$VAR", "x"] | { env = "A", key = "a.b", value = false } | { file = "a.yaml", key = "a", value = 1 }
"when-done" | "http://[::1]:${P}/" | "http://[/"
"http://h:99999999999999999999/" | "\u202e\U0001f916" | 3600 | 0.1 | 0x1F | 1_0
"""
VALUES = [value for line in _VALUES.strip().split(b"\n") for value in line.split(b" | ")]
VALUES += [
    b"9" * 400,
    b"0x" + b"f" * 400,
    b'"%s"' % (b"x" * 600),
    b"[" * 60 + b"]" * 60,
    b"{a=" * 30 + b"1" + b"}" * 30,
]
PIECES = [
    *b"= { } [ ] , . \" ' # \\ \"\"\" ''' \\u0000 \\U0010ffff".split(),
    b"\n",
    b"\r",
    b"\r\n",
    b"\t",
    b" ",
]
PIECES += [b"\0", b"\x7f", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xae"]


class Mutations:
    """Makes inputs out of the corpus."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._good, bad = (
            [path.read_bytes() for path in sorted((HERE / folder).glob("*.toml"))]
            for folder in ("good", "bad")
        )
        self._corpus = [text for text in self._good + bad if len(text) < LONGEST_BYTES]
        self._ours = [text for text in self._good if b"[kt." in text]

    def input(self, number: int) -> bytes:
        """Return the input of this number."""
        chance = random.Random(self.seed * 1_000_000_007 + number)
        # What is right but for one thing gets further than what is wrong already.
        text = chance.choice(chance.choice((self._good, self._good, self._ours, self._corpus)))
        for _ in range(chance.choice((1, 1, 1, 1, 2, 2, 3, 8))):
            text = chance.choice(_WAYS)(text, chance, self._corpus)
        return text[:LONGEST_BYTES]


Way = Callable[[bytes, random.Random, list[bytes]], bytes]


def _lines(text: bytes, chance: random.Random, _: list[bytes]) -> bytes:
    lines = text.split(b"\n")
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(3):
        case 0:
            del lines[first]
        case 1:
            lines.insert(second, lines[first])
        case _:
            lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def _header(text: bytes, chance: random.Random, _: list[bytes]) -> bytes:
    return _with_line(text, chance, chance.choice(HEADERS))


def _setting(text: bytes, chance: random.Random, _: list[bytes]) -> bytes:
    return _with_line(text, chance, chance.choice(KEYS) + b" = " + chance.choice(VALUES))


def _with_line(text: bytes, chance: random.Random, line: bytes) -> bytes:
    lines = text.split(b"\n")
    lines.insert(chance.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


def _value(text: bytes, chance: random.Random, _: list[bytes]) -> bytes:
    """Give another value to a key."""
    return _replaced(text, chance, lambda line: line.partition(b"=")[0] + b"= " + chance.choice(VALUES))


def _key(text: bytes, chance: random.Random, _: list[bytes]) -> bytes:
    """Give another key to a value."""
    return _replaced(text, chance, lambda line: chance.choice(KEYS) + b" =" + line.partition(b"=")[2])


def _replaced(text: bytes, chance: random.Random, change: Callable[[bytes], bytes]) -> bytes:
    lines = text.split(b"\n")
    settings = [number for number, line in enumerate(lines) if b"=" in line and line[:1] != b"#"]
    if settings:
        number = chance.choice(settings)
        lines[number] = change(lines[number])
    return b"\n".join(lines)


def _piece(text: bytes, chance: random.Random, _: list[bytes]) -> bytes:
    start = chance.randrange(len(text) + 1)
    return text[:start] + chance.choice(PIECES) + text[start + chance.choice((0, 0, 1, 2, 12)) :]


def _bytes(text: bytes, chance: random.Random, _: list[bytes]) -> bytes:
    start = chance.randrange(len(text) + 1)
    return (
        text[:start]
        + chance.randbytes(chance.choice((1, 1, 2, 4)))
        + text[start + chance.choice((0, 1, 3)) :]
    )


def _cut(text: bytes, chance: random.Random, _: list[bytes]) -> bytes:
    start = chance.randrange(len(text) + 1)
    return text[:start] + text[start + chance.randrange(40) :]


def _end(text: bytes, chance: random.Random, _: list[bytes]) -> bytes:
    return text[: chance.randrange(len(text) + 1)]


def _again(text: bytes, chance: random.Random, _: list[bytes]) -> bytes:
    start = chance.randrange(len(text) + 1)
    part = text[start : start + chance.randrange(60)]
    return text[:start] + part * chance.choice((1, 2, 20)) + text[start:]


def _other(text: bytes, chance: random.Random, corpus: list[bytes]) -> bytes:
    """Join the beginning of one with the end of another, at line ends."""
    mine, theirs = text.split(b"\n"), chance.choice(corpus).split(b"\n")
    return b"\n".join(mine[: chance.randrange(len(mine) + 1)] + theirs[chance.randrange(len(theirs) + 1) :])


_WAYS: tuple[Way, ...] = (
    _lines, _header, _setting, _setting, _value, _value, _value, _key, _key, _piece, _bytes, _cut, _end, _again, _other
)  # fmt: skip

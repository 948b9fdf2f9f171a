"""From the text of a pattern to the automaton that `line_pattern` runs: what is understood, and what is refused.

The subset of Python's `re` that needs no going back (`re` documentation, "Regular Expression Syntax"), bounded in size.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

MOST_STATES = 300
MOST_REPEATS = 100
DEEPEST = 50

_CLASSES: dict[str, Callable[[str], bool]] = {
    "d": str.isdecimal,
    "w": lambda char: char.isalnum() or char == "_",
    "s": str.isspace,
}
_PLAIN = {"t": "\t", "f": "\f", "v": "\v", "r": "\r", "a": "\a"}
_END = ""
Test = Callable[[str], bool]


class PatternRefused(Exception):
    """The text is no pattern, or one whose match time has no bound; the argument says why."""


@dataclass(slots=True)
class State:
    """Where the automaton can be: `test` leads over a character to the next state, `free` over none."""

    test: Test | None = None
    free: list[int] = field(default_factory=list)
    only_at: str = ""  # "^" or "$": `free` leads on at that end of the line only


class Compiler:
    """Recursive descent over the pattern.

    Each part is a function from the state that follows it to the state where it begins, so that a repetition can
    build its part as often as it needs.
    """

    def __init__(self, text: str) -> None:
        self._folds = text.startswith("(?i)")
        self._text = text
        self._at = 4 if self._folds else 0
        self._depth = 0
        self._states: list[State] = [State(), State()]  # the beginning, and the acceptance

    def compile(self) -> tuple[list[State], int]:
        """Return the states, the beginning first, and which of them accepts. Raises PatternRefused."""
        tree = self._alternatives()
        if self._at < len(self._text):
            raise PatternRefused("a ) without its (")
        self._states[0].free.append(tree(1))
        return self._states, 1

    def _alternatives(self) -> "_Part":
        self._depth += 1
        if self._depth > DEEPEST:
            raise PatternRefused(f"groups nested deeper than {DEEPEST}")
        parts = [self._sequence()]
        while self._next("|"):
            parts.append(self._sequence())
        self._depth -= 1
        if len(parts) == 1:
            return parts[0]
        return lambda after: self._add(State(free=[part(after) for part in parts]))

    def _sequence(self) -> "_Part":
        parts: list[_Part] = []
        while self._peek() not in (_END, "|", ")"):
            parts.append(self._repeated())

        def build(after: int) -> int:
            for part in reversed(parts):
                after = part(after)
            return after

        return build

    def _repeated(self) -> "_Part":
        anchor = self._peek() in ("^", "$")
        if self._peek() == "{" and self._repetition() is not None:
            raise PatternRefused("a {...} with nothing before it")
        part = self._atom()
        again = self._repetition()
        if again is None:
            return part
        if anchor:
            raise PatternRefused("a repeated ^ or $")
        self._next("?")  # lazy or greedy finds the same lines
        if self._peek() in ("+", "*", "?") or (self._peek() == "{" and self._repetition() is not None):
            raise PatternRefused("a repetition of a repetition; put it in a group")
        lowest, highest = again
        return lambda after: self._repeat(part, lowest, highest, after)

    def _repeat(self, part: "_Part", lowest: int, highest: int | None, after: int) -> int:
        if highest is None:
            again = self._add(State(free=[after]))
            self._states[again].free.append(part(again))
            after = again
        else:
            end = after
            for _ in range(highest - lowest):
                after = self._add(State(free=[end, part(after)]))
        for _ in range(lowest):
            # A state of its own, so that repeating nothing a hundred times a hundred times is counted as well.
            after = self._add(State(free=[part(after)]))
        return after

    def _repetition(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._next(sign):
                return bounds
        if self._peek() != "{":
            return None
        inside, closed, _ = self._text[self._at + 1 :].partition("}")
        low, comma, high = inside.partition(",")
        if (
            not closed
            or not (low or comma)
            or not all(part == "" or _is_number(part) for part in (low, high))
        ):
            return None  # a brace that stands for itself, as in `re`
        self._at += len(inside) + 2
        lowest = int(low or 0)
        highest = (int(high) if high else None) if comma else lowest
        if max(lowest, highest or 0) > MOST_REPEATS or (highest is not None and highest < lowest):
            raise PatternRefused(f"{{{inside}}}: repetitions go from 0 to {MOST_REPEATS}, lowest first")
        return lowest, highest

    def _atom(self) -> "_Part":
        char = self._take()
        if char == "(":
            return self._group()
        if char in "^$":
            return lambda after: self._add(State(free=[after], only_at=char))
        if char in "*+?":
            raise PatternRefused(f"a {char} with nothing before it")
        test = self._test_of(char)
        return lambda after: self._add(State(test=test, free=[after]))

    def _group(self) -> "_Part":
        if self._next("?") and not self._next(":"):
            raise PatternRefused("(?...: only (?:...) and, at the very beginning, (?i) are understood")
        part = self._alternatives()
        if not self._next(")"):
            raise PatternRefused("a ( without its )")
        return part

    def _test_of(self, char: str) -> Test:
        if char == ".":
            return lambda got: got != "\n"
        if char == "[":
            return self._set()
        if char == "\\":
            return self._folded(self._escape())
        return self._folded(lambda got: got == char)

    def _set(self) -> Test:
        negated = self._next("^")
        tests: list[Test] = []
        while not tests or not self._next("]"):  # a first ] stands for itself
            if self._peek() == _END:
                raise PatternRefused("a [ without its ]")
            tests.append(self._folded(self._range()))
        return lambda got: any(test(got) for test in tests) is not negated

    def _range(self) -> Test:
        low = self._take()
        if low == "\\":
            if self._peek().lower() in _CLASSES:
                test = self._escape()
                if self._is_range():
                    raise PatternRefused("a range that begins with a class")
                return test
            low = self._escaped_char()
        if not self._is_range():
            return lambda got: got == low
        self._at += 1
        high = self._take()
        if high == "\\":
            high = self._escaped_char()
        if high < low:
            raise PatternRefused(f"the range {low}-{high}, which ends before it begins")
        return lambda got: low <= got <= high

    def _is_range(self) -> bool:
        return self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", _END)

    def _escape(self) -> Test:
        char = self._peek()
        if (known := _CLASSES.get(char.lower())) is not None:
            self._take()
            return known if char.islower() else lambda got: not known(got)
        literal = self._escaped_char()
        return lambda got: got == literal

    def _escaped_char(self) -> str:
        char = self._take()
        if char in _PLAIN:
            return _PLAIN[char]
        if char in ("x", "u"):
            size = 2 if char == "x" else 4
            digits = self._text[self._at : self._at + size]
            self._at += len(digits)
            if len(digits) < size or not set(digits) <= set("0123456789abcdefABCDEF"):
                raise PatternRefused(f"\\{char}{digits}, which is no character")
            return chr(int(digits, 16))
        if char.isalnum():
            raise PatternRefused(f"\\{char}, which is not understood here")
        return char

    def _folded(self, test: Test) -> Test:
        if not self._folds:
            return test
        return lambda got: any(len(form) == 1 and test(form) for form in (got, got.lower(), got.upper()))

    def _add(self, state: State) -> int:
        if len(self._states) >= MOST_STATES:
            raise PatternRefused(f"a pattern that needs more than {MOST_STATES} states; repeat less")
        self._states.append(state)
        return len(self._states) - 1

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self, wanted: str) -> bool:
        if self._peek() != wanted:
            return False
        self._at += 1
        return True

    def _take(self) -> str:
        char = self._peek()
        if char == _END:
            raise PatternRefused("an end in the middle of something")
        self._at += 1
        return char


_Part = Callable[[int], int]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 6

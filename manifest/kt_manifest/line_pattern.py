"""Regular expressions whose match time is linear in the text, whatever the pattern: for lines that an agent prints.

Python's `re` goes back and tries again: `(a+)+$` over thirty characters takes longer than anybody waits, and an agent
chooses the text. So a pattern becomes an automaton (Thompson, 1968), made deterministic as far as the text needs. What
cannot be matched so (back-references, looking around), or is not needed on one line (`\\b`, other flags
than `(?i)`), is refused.
What is accepted means what it means in `re.search`.
"""

from kt_manifest import pattern_compiler
from kt_manifest.pattern_compiler import PatternRefused

LONGEST_PATTERN = 500
CACHED = 20_000
"""Steps that are remembered; then all are forgotten, as RE2 does, so that memory is bounded too."""


class LinePattern:
    """A pattern, ready to be looked for."""

    def __init__(self, text: str) -> None:
        """Compile.

        Raises:
            PatternRefused.
        """
        if len(text) > LONGEST_PATTERN:
            raise PatternRefused(f"a pattern of {len(text)} characters, more than {LONGEST_PATTERN}")
        self.text = text
        self._states, self._accept = pattern_compiler.Compiler(text).compile()
        self._begin = self._closure({0}, "^")
        self._anywhere = self._closure({0}, "")
        self._steps: dict[frozenset[int], dict[str, frozenset[int]]] = {}
        self._cached = 0

    def found_in(self, line: str) -> bool:
        """Tell whether the pattern is found anywhere in a line without its end."""
        current = self._begin
        for char in line:
            if self._accept in current:
                return True
            known = self._steps.get(current)
            current = known[char] if known is not None and char in known else self._step(current, char)
        at = "$" if line else "^$"
        return self._accept in current or self._accept in self._closure(set(current), at)

    def _step(self, current: frozenset[int], char: str) -> frozenset[int]:
        if self._cached >= CACHED:
            self._steps.clear()
            self._cached = 0
        reached = {
            state.free[0]
            for number in current
            if (state := self._states[number]).test is not None and state.test(char)
        }
        following = self._closure(reached, "") | self._anywhere
        self._steps.setdefault(current, {})[char] = following
        self._cached += 1
        return following

    def _closure(self, numbers: set[int], at: str) -> frozenset[int]:
        found, waiting = set(numbers), list(numbers)
        while waiting:
            state = self._states[waiting.pop()]
            if state.test is not None or (state.only_at and state.only_at not in at):
                continue
            fresh = [number for number in state.free if number not in found]
            found.update(fresh)
            waiting += fresh
        return frozenset(found)

"""The nearest known word, for error messages that suggest one."""

from collections.abc import Iterable

MAX_DISTANCE = 3


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word at most three edits away, the closest; ties go to the alphabetically first.

    None where nothing is close, so that a message never suggests something unrelated.
    """
    measured = sorted(
        (distance(word, candidate), candidate) for candidate in known if _may_be_close(word, candidate)
    )
    return measured[0][1] if measured and measured[0][0] <= MAX_DISTANCE else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the sentence part that an error message ends with."""
    found = nearest(word, known)
    return f"did you mean {found}?" if found else "no close match"


def distance(left: str, right: str) -> int:
    """Return the Levenshtein distance: insertions, deletions and substitutions, each counting one."""
    previous = list(range(len(right) + 1))
    for row, left_char in enumerate(left, start=1):
        current = [row]
        for column, right_char in enumerate(right, start=1):
            replaced = previous[column - 1] + (left_char != right_char)
            current.append(min(previous[column] + 1, current[-1] + 1, replaced))
        previous = current
    return previous[-1]


def _may_be_close(word: str, candidate: str) -> bool:
    # The difference in length is a lower bound: it keeps a megabyte of typed nonsense from costing anything.
    return abs(len(word) - len(candidate)) <= MAX_DISTANCE

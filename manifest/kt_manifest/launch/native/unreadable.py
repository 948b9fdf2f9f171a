"""A text that is not what its format wants."""


class Unreadable(Exception):
    """The text cannot be read as its format; `line` counts from 1, and the reason quotes no value."""

    def __init__(self, reason: str, *, line: int) -> None:
        self.reason = reason
        self.line = line
        super().__init__(f"line {line}: {reason}")


class Uneditable(Exception):
    """The text can be read, but a place in it cannot be changed without changing something else."""

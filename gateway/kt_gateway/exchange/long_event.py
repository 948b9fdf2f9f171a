"""An event too long to keep: its end is found, and of a one-line JSON object the members that matter."""

import re
from typing import Any

from kt_gateway.decode.dialect import Dialect
from kt_gateway.decode.members import Members
from kt_gateway.exchange import sse

_DATA_LINE = re.compile(rb"(?:\A|[\r\n])data:")
_LINE_END = re.compile(rb"[\r\n]")


class LongEvent:
    """Fed the event's bytes, it says where the event ends and what was found in it."""

    def __init__(self, dialect: Dialect, beginning: bytes) -> None:
        self._finish = dialect.finish
        self.finished = self._finish.search(beginning) is not None
        self._recent = beginning[-64:]
        self._members = Members(dialect.members, inside=dialect.inside)
        self._end = sse.EventEnd()
        self._end.find(beginning)
        line = _DATA_LINE.search(beginning)
        self._line_over = line is None  # no data line in the first 64 KiB: nothing to read here
        self._line(beginning[line.end() :] if line else b"")

    def feed(self, data: bytes) -> int | None:
        """Take bytes; return how many of them still belong to the event once its end is among them."""
        end = self._end.find(data)
        seen = self._recent + (data if end is None else data[:end])
        self.finished = self.finished or self._finish.search(seen) is not None
        self._recent = seen[-64:]
        self._line(data if end is None else data[:end])
        return end

    def _line(self, data: bytes) -> None:
        if self._line_over:
            return
        end = _LINE_END.search(data)
        self._line_over = end is not None
        self._members.feed(data[: end.start()] if end else data)

    @property
    def repeated(self) -> bool:
        """Whether a member that we wanted was named twice."""
        return self._members.is_repeated

    def document(self) -> dict[str, Any]:
        """Return what was found of the event's object."""
        return self._members.document()

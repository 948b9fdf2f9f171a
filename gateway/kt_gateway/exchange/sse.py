"""Server-sent events taken apart without losing a byte: where each event ends, and what its data is.

Source: WHATWG HTML, section 9.2.5 and 9.2.6 (event stream interpretation). Lines end with CR, LF or CRLF; one space
after the colon belongs to the syntax; comments begin with a colon; a BOM may begin the stream. Unlike a browser we also
look at an event that the end of the stream cuts off, since servers leave the last blank line out.
"""

import re

EVENT_LIMIT_BYTES = 64 << 10
"""A longer event is no longer kept whole: its bytes go on as they come."""

BOM = b"\xef\xbb\xbf"

# Atomic groups: a CRLF must never be taken for CR and LF, that would be a blank line.
_BLANK = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LINE_END = re.compile(rb"(?>\r\n|\n|\r)")
_SPLIT = re.compile(rb"\r\n|\n|\r")


class Framer:
    """Cuts a byte stream into events, blank line included; keeps at most one incomplete event.

    Between events stray line ends (a second blank line) are events of their own, without data.
    """

    def __init__(self) -> None:
        self.pending = bytearray()
        self._searched = 0
        self.split_crlf = False

    def push(self, data: bytes) -> None:
        """Take the next bytes."""
        self.pending += data

    def stray_newline(self) -> bool:
        """Take the LF of a CRLF whose CR already ended the last event; True when there was one."""
        if not self.split_crlf or not self.pending:
            return False
        self.split_crlf = False
        if self.pending[0] != 0x0A:
            return False
        del self.pending[0]
        return True

    def pop(self) -> bytes | None:
        """Return the next whole event's bytes, None where it is not all there yet."""
        pending = self.pending
        if not pending:
            return None
        found = _LINE_END.match(pending) or _BLANK.search(pending, self._searched)
        if found is None:
            # The longest beginning of a blank line that may stand at the end is CRLF CR.
            self._searched = max(0, len(pending) - 3)
            return None
        end = found.end()
        event = bytes(pending[:end])
        self.split_crlf = end == len(pending) and event.endswith(b"\r")
        del pending[:end]
        self._searched = 0
        return event

    @property
    def idle(self) -> bool:
        """Whether nothing is kept, so that the next byte begins an event."""
        return not self.pending and not self.split_crlf

    def take_all(self) -> bytes:
        """Return and forget the incomplete event."""
        rest = bytes(self.pending)
        self.pending.clear()
        self._searched = 0
        return rest


class EventEnd:
    """Finds where an event ends that is too long to keep."""

    def __init__(self) -> None:
        self._carry = b""

    def find(self, data: bytes) -> int | None:
        """Return how many bytes of `data` still belong to the event, None where it goes on behind them."""
        seen = self._carry + data
        found = _BLANK.search(seen)
        if found is None:
            self._carry = seen[-3:]
            return None
        return found.end() - len(self._carry)


def data_of(event: bytes) -> tuple[bytes | None, bytes]:
    """Return an event's data (its data lines joined with LF; None without one) and its type (empty by default)."""
    if event.startswith(b"data:") and event.find(b"\n", 5) == len(event) - 2 and b"\r" not in event:
        return event[6 if event[5:6] == b" " else 5 : -2], b""  # nearly every event there is
    data: bytes | None = None
    kind = b""
    for line in _SPLIT.split(event.removeprefix(BOM)):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data = value if data is None else data + b"\n" + value
        elif name == b"event":
            kind = value
    return data, kind


NO, MAYBE, YES = 0, 1, 2


def begins_terminal(cut: bytes, terminal: bytes) -> int:
    """Return whether an incomplete event is, may yet become, or cannot be read as, one whose data is `terminal`.

    The first data line decides. `MAYBE` says that the bytes behind the last line end must not leave yet.
    """
    *lines, last = _SPLIT.split(cut.removeprefix(BOM))
    for line in lines:
        if line.startswith(b"data:"):
            return YES if line[5:].lstrip(b" ").startswith(terminal) else NO
        if line == b"data":
            return NO
    if last.startswith(b"data:"):
        value = last[5:].lstrip(b" ")
        return YES if value.startswith(terminal) else MAYBE if terminal.startswith(value) else NO
    return MAYBE if b"data:".startswith(last) or BOM.startswith(last) else NO


def comments_of(event: bytes) -> bytes:
    """Return an event's comment lines, line ends included: they belong to the connection, not to the event."""
    kept, at = [], 0
    for end in _LINE_END.finditer(event):
        if event[at : at + 1] == b":":
            kept.append(event[at : end.end()])
        at = end.end()
    return b"".join(kept)

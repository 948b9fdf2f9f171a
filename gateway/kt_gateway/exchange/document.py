"""An answer that is one JSON document on its way: everything goes on, what tells of usage is picked out.

Small bodies are kept and parsed; beyond `KEEP_BYTES` the wanted members are found as the bytes stream by, so that a
body of any size passes in constant memory.
"""

import json
from typing import Any

from kt_gateway.decode.dialect import Dialect
from kt_gateway.decode.members import Members
from kt_gateway.decode.tally import Tally
from kt_gateway.exchange import duplicates, sse
from kt_gateway.exchange.outcome import Outcome

KEEP_BYTES = 128 << 10


class Document:
    """Reads one JSON document as it passes. `readable` is known at the end: whether it was JSON, whole."""

    kept_bytes = 0
    streams = False

    def __init__(self, dialect: Dialect, tally: Tally) -> None:
        self._dialect = dialect
        self._tally = tally
        self._kept: list[bytes] = []
        self._kept_bytes = 0
        self._members: Members | None = None
        self.readable = False
        self.overlong = False  # a member that we wanted was too long to keep

    def data(self, data: bytes, *, mono_ns: int) -> Outcome:  # noqa: ARG002 (the shape of a reader)
        """Take bytes of the document."""
        if self._members is not None:
            self._members.feed(data)
            return Outcome(data)
        self._kept.append(data)
        self._kept_bytes += len(data)
        if self._kept_bytes > KEEP_BYTES:
            self._scan()
        return Outcome(data)

    def _scan(self) -> Members:
        self._members = Members(self._dialect.members, inside=self._dialect.inside)
        self._members.feed(b"".join(self._kept).removeprefix(sse.BOM))
        self._kept.clear()
        return self._members

    def end(self, *, mono_ns: int) -> bytes:
        """Take the end of the body, proper or not."""
        document = self._parse() if self._members is None else None
        if document is None:
            document = self._rescue()
        if document:
            finding = self._dialect.read(document)
            self._tally.take(finding, mono_ns=mono_ns)
            if finding.usage is not None and self._repeats():
                self._tally.repeated = True
        return b""

    def _repeats(self) -> bool:
        if self._members is not None:
            return self._members.is_repeated
        return duplicates.repeats(b"".join(self._kept), self._dialect.shape)

    def _parse(self) -> dict[str, Any] | None:
        try:
            document = json.loads(b"".join(self._kept).removeprefix(sse.BOM).decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None
        self.readable = True
        return document if isinstance(document, dict) else {}

    def _rescue(self) -> dict[str, Any]:
        members = self._members or self._scan()
        self.readable = members.complete
        self.overlong = members.is_overlong
        return members.document()

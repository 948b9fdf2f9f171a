"""What one HTTP call to a model provider means: fed bytes and times, it says what to send, hold and record.

Sans-io: touches no socket, no clock, no file, and never raises into the stream.
"""

from dataclasses import dataclass
from typing import Any

from kt_ledger.values import Completeness, Reason

Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class RequestHead:
    """A request's head as the agent sent it; `path` is the upstream's, without token and query."""

    method: str
    path: str
    query: str
    headers: Headers


@dataclass(frozen=True, slots=True)
class Passage:
    """What to do with bytes: send `now`; make the close record durable when `settle`, then send `held`."""

    now: bytes = b""
    held: bytes = b""
    settle: bool = False


NOTHING = Passage()


class Exchange:
    """One HTTP call: feed it what happens, send what it says, write what it records."""

    collect_limit_bytes = 16 << 20

    def __init__(
        self,
        *,
        id: str,
        instance_id: str,
        run_id: str | None,
        head: RequestHead,
        started_at_ns: int,
        started_mono_ns: int,
        inject_usage: bool = True,
    ) -> None:
        self.id = id
        self.instance_id = instance_id
        self.run_id = run_id
        self.head = head
        self.metered = head.method == "POST" and head.path.rstrip("/").endswith("/chat/completions")
        self.wants_body = self.metered
        self.ended_cleanly = False
        self.settled = False
        self._inject = inject_usage
        self._started_at_ns = started_at_ns
        self._started_mono_ns = started_mono_ns
        self._request_bytes = 0
        self._response_bytes = 0
        self._status: int | None = None
        self._sent = False
        self._reason: Reason = Reason.NO_USAGE if self.metered else Reason.UNMETERED_PATH

    def collected(self, body: bytes) -> bytes:
        """Take the whole request body and return what to forward."""
        self._request_bytes = len(body)
        return body

    def request_passed(self, count_bytes: int) -> None:
        """Note request bytes that went straight through."""
        self._request_bytes += count_bytes

    def open_fields(self) -> dict[str, Any]:
        """Return the journal's `open` payload."""
        return {
            "x": self.id,
            "instance": self.instance_id,
            "run": self.run_id,
            "at_ns": self._started_at_ns,
            "method": self.head.method,
            "path": self.head.path,
            "family": "chat.completions" if self.metered else "unknown",
            "request_bytes": self._request_bytes,
            "usage_asked_by_us": False,
        }

    def sent(self) -> None:
        """Note that the first bytes have left for the provider."""
        self._sent = True

    def response_head(self, *, status: int, headers: Headers, mono_ns: int) -> None:
        """Take the final response head."""
        self._status = status

    def response_data(self, data: bytes, *, last: bool, mono_ns: int) -> Passage:
        """Take body bytes and say what to send."""
        self._response_bytes += len(data)
        if not last or self.settled:
            return Passage(now=data)
        return self._settle(held=data)

    def response_end(self, *, mono_ns: int) -> Passage:
        """Take the proper end of the message."""
        return NOTHING if self.settled else self._settle(held=b"")

    def failed(self, reason: Reason, *, mono_ns: int) -> Passage:
        """Take the news that nothing more will come."""
        if self.settled:
            return NOTHING
        self.settled = True
        self._reason = reason
        return Passage(settle=True)

    def _settle(self, held: bytes) -> Passage:
        self.settled = True
        self.ended_cleanly = True
        return Passage(held=held, settle=True)

    def close_fields(self, *, at_ns: int, mono_ns: int) -> dict[str, Any]:
        """Return the journal's `close` (or `local`) payload."""
        return {
            **self.open_fields(),
            "at_ns": at_ns,
            "opened_at_ns": self._started_at_ns,
            "status": self._status,
            "completeness": Completeness.UNKNOWN,
            "reason": self._reason,
            "counts": {},
            "response_bytes": self._response_bytes,
            "latency_ns": mono_ns - self._started_mono_ns,
            "sent": "yes" if self._sent else "no",
        }

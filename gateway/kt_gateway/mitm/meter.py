"""What a lane needs of the instance whose listener it serves: a seam, so that no lane knows who records and how."""

from typing import Any, Protocol

from kt_gateway.exchange.exchange import RequestHead
from kt_gateway.http1 import door
from kt_gateway.mitm.guard import GuardedExchange
from kt_ledger.values import Reason


class Meter(Protocol):
    """One instance's rules and record."""

    instance_id: str
    door: door.Door
    in_flight: int
    draining: bool
    head_timeout_s: float

    def begin(self, run_id: str | None, asked: RequestHead) -> GuardedExchange:
        """Return the exchange of a request that arrived now."""
        ...

    def note_unasked(self, model: str | None) -> None:
        """Remember that this model's provider refuses to be asked for usage."""
        ...

    def record(self, type_: int, fields: dict[str, Any], *, keep: bool = True) -> bool:
        """Write to the journal; False where that is not possible now."""
        ...

    def record_local(self, run_id: str | None, asked: RequestHead, status: int, reason: Reason) -> None:
        """Record a request that was answered here and went nowhere."""
        ...

    def count(self, kind: str, run_id: str | None) -> None:
        """Count a request that leaves no row of its own."""
        ...

    def now(self) -> tuple[int, int]:
        """Return (wall clock, monotonic clock) in nanoseconds."""
        ...

"""An exchange behind a guard: whatever our own metering does, the agent's bytes go on.

Every method has the exchange's own meaning. After the first exception the exchange is never asked again: bytes pass
as they come, those that it had taken and not given back first, and the row says `meter_fault`.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from kt_gateway.exchange.exchange import Exchange, Passage
from kt_ledger.values import Completeness, Reason

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
_WITHHELD_LIMIT_BYTES = 256 << 10


class GuardedExchange:
    """An exchange that cannot hurt."""

    def __init__(self, exchange: Exchange, *, started_at_ns: int) -> None:
        self._exchange = exchange
        self._started_at_ns = started_at_ns
        self.broken = False
        self.settled = False
        self._owed = b""  # bytes that the exchange took and did not give back
        self._sent = False
        self._failed = False
        self._facts: dict[str, Any] = {}
        self.id = exchange.id
        self.wants_body = self._ask(lambda: exchange.wants_body, False)
        self.metered = self._ask(lambda: exchange.metered, False)

    @property
    def ended_cleanly(self) -> bool:
        """Whether the answer may be given a clean end; a fault of ours must not deny it one."""
        if self.broken or self._failed:
            return not self._failed
        return self._ask(lambda: self._exchange.ended_cleanly, True)

    @property
    def finish_seen(self) -> bool:
        """Whether only the usage may still be missing."""
        return self._ask(lambda: self._exchange.finish_seen, False)

    @property
    def comes_at_once(self) -> bool:
        """Whether the answer is one document that tells its usage: cutting it saves nothing. False after a fault."""
        return self._ask(lambda: self._exchange.metered and not self._exchange.stream, False)

    @property
    def in_doubt(self) -> bool:
        """Whether the answer, head included, must not go on yet."""
        return self._ask(lambda: self._exchange.in_doubt, False)

    @property
    def again(self) -> bool:
        """Whether the request is to be made once more, without what we added."""
        return self._ask(lambda: self._exchange.again, False)

    @property
    def model(self) -> str | None:
        """The model that was asked for."""
        return self._ask(lambda: self._exchange.asked.model, None)

    @property
    def may_withhold(self) -> bool:
        """Whether fewer bytes may go on than came: an event that we asked for is taken out. Known once opened."""
        return bool(self._facts.get("usage_asked_by_us"))

    @property
    def collect_limit_bytes(self) -> int:
        """How large a body the exchange wants to see."""
        return self._exchange.collect_limit_bytes

    def collected(self, body: bytes) -> bytes:
        """Give the whole request body; return what to forward."""
        return self._ask(lambda: self._exchange.collected(body), body)

    def request_passed(self, count_bytes: int) -> None:
        """Tell of request bytes that were not collected."""
        self._ask(lambda: self._exchange.request_passed(count_bytes), None)

    def open_fields(self) -> dict[str, Any]:
        """Return the `open` payload, at least the facts that a close can be matched by."""
        self._facts = self._ask(self._exchange.open_fields, self._bare_fields())
        return self._facts

    def sent(self) -> None:
        """Tell that the first bytes have left."""
        self._sent = True
        self._ask(self._exchange.sent, None)

    def response_head(self, *, status: int, headers: tuple[tuple[bytes, bytes], ...], mono_ns: int) -> None:
        """Give the final response head."""
        if not self.broken:
            try:
                self._exchange.response_head(status=status, headers=headers, mono_ns=mono_ns)
            except Exception:
                self._break()

    def response_data(self, data: bytes, *, last: bool, mono_ns: int) -> Passage:
        """Give body bytes; return what to do with them."""
        if self.broken:
            return self._unmetered(data, last)
        self._owed = self._owed + data if self._owed else data
        try:
            return self._account(self._exchange.response_data(data, last=last, mono_ns=mono_ns))
        except Exception:
            self._break()
            return self._unmetered(b"", last)

    def response_end(self, *, mono_ns: int) -> Passage:
        """Tell of the proper end; return what is left to do."""
        if not self.broken:
            try:
                return self._account(self._exchange.response_end(mono_ns=mono_ns))
            except Exception:
                self._break()
        return self._unmetered(b"", True)

    def failed(self, reason: Reason, *, mono_ns: int) -> Passage:
        """Tell that nothing more will come; return what is left to do."""
        self._failed = True
        if not self.broken:
            try:
                return self._account(self._exchange.failed(reason, mono_ns=mono_ns))
            except Exception:
                self._break()
        return self._unmetered(b"", True)

    def close_fields(self, *, at_ns: int, mono_ns: int) -> dict[str, Any]:
        """Return the `close` payload; after a fault one that says so."""
        if not self.broken:
            fields: dict[str, Any] = self._ask(
                lambda: self._exchange.close_fields(at_ns=at_ns, mono_ns=mono_ns), {}
            )
            if fields:
                return fields
        facts = self._facts or self._bare_fields()
        fault = {"completeness": Completeness.UNKNOWN, "reason": Reason.METER_FAULT, "counts": {}}
        times = {"opened_at_ns": facts["at_ns"], "at_ns": at_ns}
        return {**facts, **times, **fault, "sent": "yes" if self._sent else "no"}

    def _account(self, passage: Passage) -> Passage:
        """Note which of the bytes in hand went on."""
        self.settled = self.settled or passage.settle
        given = passage.now + passage.held
        if given == self._owed:
            self._owed = b""
        elif given:
            self._owed = self._owed[self._owed.find(given) + len(given) :] if given in self._owed else b""
        if len(self._owed) > _WITHHELD_LIMIT_BYTES:
            self._owed = b""  # a withheld event, not one in hand: the core passes on what it keeps at 64 KiB
        return passage

    def _unmetered(self, data: bytes, last: bool) -> Passage:
        data, self._owed = self._owed + data, b""
        settle = last and not self.settled
        self.settled = self.settled or last
        return Passage(held=data, settle=True) if settle else Passage(now=data)

    def _ask(self, ask: Callable[[], Result], otherwise: Result) -> Result:
        if self.broken:
            return otherwise
        try:
            return ask()
        except Exception:
            self._break()
            return otherwise

    def _break(self) -> None:
        self.broken = True
        logger.exception("metering of exchange %s failed; its bytes pass unmetered", self._exchange.id)

    def _bare_fields(self) -> dict[str, Any]:
        exchange = self._exchange
        known = {"x": exchange.id, "instance": exchange.instance_id, "run": exchange.run_id}
        asked = {"method": exchange.head.method, "path": exchange.head.path, "family": "unknown"}
        return {**known, **asked, "at_ns": self._started_at_ns, "usage_asked_by_us": False}

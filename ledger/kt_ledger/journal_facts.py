"""Facts out of a journal record's fields: typed, bounded, fit for the store; None where a field does not say.

The checksum says that a record is what was written, not that it makes sense: agents and providers put words and
numbers into it, and one that the store cannot take would stop the ledger for good.
"""

import json
from typing import Any

from kt_ledger.values import U64_MAX, UNITS, Completeness, Counts, Exchange, Reason, Sent, Source, UsageEvent

TEXT_LIMIT = 512
PATH_LIMIT = 2048
RAW_LIMIT = 16384
I64_MAX = 2**63 - 1

Fields = dict[str, Any]


def text(fields: Fields, name: str, *, limit: int = TEXT_LIMIT) -> str | None:
    """Return a text of at most `limit` characters; lone surrogates and NUL, which SQL refuses, are replaced."""
    value = fields.get(name)
    if type(value) is not str:
        return None
    if len(value) > limit:
        value = value[:limit]
    if not value.isascii():
        value = value.encode("utf-8", "replace").decode("utf-8")
    return value.replace("\0", "\ufffd")


def natural(fields: Fields, name: str, *, limit: int = I64_MAX) -> int | None:
    """Return an integer from 0 to `limit`; a bool is none."""
    value = fields.get(name)
    return value if type(value) is int and 0 <= value <= limit else None


def flag(fields: Fields, name: str) -> bool | None:
    """Return a truth value."""
    value = fields.get(name)
    return value if isinstance(value, bool) else None


def whole(fields: Fields, *, at: str) -> bool:
    """Return whether a record says what a row must have: its id, its instance, and in `at` when it began."""
    return bool(text(fields, "x") and text(fields, "instance") and natural(fields, at) is not None)


def in_flight(opened: Fields, *, sent: bool) -> Exchange:
    """Return the exchange of a `whole` open record."""
    return _exchange(opened, None, at="at_ns", sent=Sent.YES if sent else Sent.MAYBE)


def opened(exchange: Exchange) -> Fields:
    """Return the fields of the open record that an exchange in flight came from."""
    facts = {name: getattr(exchange, name) for name in _OPEN_FIELDS}
    identity = {"x": exchange.id, "instance": exchange.instance_id, "run": exchange.run_id}
    return {**facts, **identity, "at_ns": exchange.started_at_ns, "model": exchange.model_asked}


def closed(fields: Fields, opened: Fields | None) -> Exchange:
    """Return the exchange that a close record ends; without an open one it must be `whole` by itself."""
    sent = _SENT.get(text(fields, "sent") or "", Sent.YES)
    if opened is None:
        return _exchange(fields, fields, at="opened_at_ns", sent=sent)
    return _exchange(opened, fields, at="at_ns", sent=sent)


def local(fields: Fields) -> Exchange:
    """Return the exchange of a `whole` local record: a call that never left."""
    return _exchange(fields, fields, at=local_start(fields), sent=Sent.NO)


def local_start(fields: Fields) -> str:
    """Return the name of the field that says when a local call began."""
    return "opened_at_ns" if "opened_at_ns" in fields else "at_ns"


def usage(exchange: Exchange, fields: Fields) -> UsageEvent:
    """Return the usage event of a call that left and was closed by a record with these fields."""
    counts, counts_fault = _counts(fields.get("counts"))
    completeness, reason = _judged(fields, counts, fault=counts_fault)
    assert exchange.ended_at_ns is not None
    return UsageEvent(
        id=exchange.id,
        instance_id=exchange.instance_id,
        run_id=exchange.run_id,
        source=Source.ENGINE_OBSERVED,
        key=exchange.id,
        counts=counts,
        completeness=completeness,
        reason=reason,
        model_asked=exchange.model_asked,
        model_answered=text(fields, "model"),
        provider=text(fields, "provider"),
        service_tier=text(fields, "service_tier"),
        request_id=text(fields, "request_id"),
        raw_usage=_raw(fields),
        started_at_ns=exchange.started_at_ns,
        ended_at_ns=exchange.ended_at_ns,
    )


def lost(opened: Fields, *, sent: bool, at_ns: int) -> tuple[Exchange, UsageEvent]:
    """Return what becomes of an exchange whose journal ended before it did: unknown, never zero."""
    reason = Reason.GATEWAY_DIED if sent else Reason.MAY_NOT_HAVE_BEEN_SENT
    began = natural(opened, "at_ns") or 0
    close = {"completeness": Completeness.UNKNOWN.value, "reason": reason.value, "at_ns": max(at_ns, began)}
    ended = _exchange(opened, close, at="at_ns", sent=Sent.YES if sent else Sent.MAYBE)
    return ended, usage(ended, close)


_SENT = {sent.value: sent for sent in Sent}
_COMPLETENESS = {completeness.value: completeness for completeness in Completeness}
_OPEN_FIELDS = (
    "method",
    "path",
    "family",
    "stream",
    "max_tokens",
    "choices",
    "request_bytes",
    "usage_asked_by_us",
    "retry_count",
)


def _exchange(opened: Fields, close: Fields | None, *, at: str, sent: Sent) -> Exchange:
    """Return the exchange that was begun by one record and, where there is a `close`, ended by another."""
    began = natural(opened, at) or 0
    end: Fields = close or {}
    stream, request_bytes = flag(end, "stream"), natural(end, "request_bytes")
    return Exchange(
        id=text(opened, "x") or "",
        instance_id=text(opened, "instance") or "",
        run_id=text(opened, "run") or None,
        sent=sent,
        state="in_flight" if close is None else "ended",
        method=text(opened, "method") or "",
        path=text(opened, "path", limit=PATH_LIMIT) or "",
        family=text(opened, "family") or "unknown",
        status=natural(end, "status", limit=999),
        stream=flag(opened, "stream") if stream is None else stream,
        reason=text(end, "reason"),
        # In a close record that stands alone `model` is the one that answered.
        model_asked=text(opened, "model") if opened is not close or sent is Sent.NO else None,
        max_tokens=natural(opened, "max_tokens", limit=U64_MAX),
        choices=natural(opened, "choices", limit=U64_MAX),
        request_bytes=natural(opened, "request_bytes") if request_bytes is None else request_bytes,
        response_bytes=natural(end, "response_bytes"),
        usage_asked_by_us=flag(opened, "usage_asked_by_us") or False,
        unsynced=flag(end, "unsynced") or False,
        retry_count=natural(opened, "retry_count"),
        started_at_ns=began,
        ended_at_ns=None if close is None else natural(end, "at_ns") or began,
        first_token_ns=natural(end, "first_token_ns"),
        latency_ns=natural(end, "latency_ns"),
        retry_at_ns=natural(end, "retry_at_ns"),
    )


def _counts(reported: object) -> tuple[Counts, bool]:
    """Return the counts, and whether one of them is no count: then none of them is believed."""
    if reported is None:
        return Counts(), False
    if not isinstance(reported, dict):
        return Counts(), True
    known = {unit: reported[unit] for unit in UNITS if reported.get(unit) is not None}
    if any(natural(known, unit, limit=U64_MAX) is None for unit in known):
        return Counts(), True
    return Counts(**known), False


def _judged(fields: Fields, counts: Counts, *, fault: bool) -> tuple[Completeness, str | None]:
    """Return how complete a close is: what it says, unless that contradicts itself."""
    said, reason = text(fields, "completeness"), text(fields, "reason")
    completeness = _COMPLETENESS.get(said or "")
    if fault or completeness is None:
        return Completeness.UNKNOWN, reason or Reason.METER_FAULT.value
    if completeness is not Completeness.EXACT:
        return completeness, reason or Reason.METER_FAULT.value
    if not counts.known:
        return Completeness.UNKNOWN, reason or Reason.NO_USAGE.value
    return completeness, None


def _raw(fields: Fields) -> str | None:
    """Return the provider's usage object as text; one too long to keep is left out rather than cut."""
    if isinstance(fields.get("raw_usage"), dict):
        fields = {"raw_usage": json.dumps(fields["raw_usage"], separators=(",", ":"))}
    raw = text(fields, "raw_usage", limit=RAW_LIMIT + 1)
    return raw if raw is not None and len(raw) <= RAW_LIMIT else None

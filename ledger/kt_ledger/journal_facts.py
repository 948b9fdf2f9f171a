"""Facts out of a journal record's fields: typed, bounded, fit for the store; None where a field does not say.

The checksum says that a record is what was written, not that it makes sense: agents and providers put words and
numbers into it, and one that the store cannot take would stop the ledger for good.
"""

from dataclasses import replace
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
    if not isinstance(value, str):
        return None
    return value[:limit].encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def natural(fields: Fields, name: str, *, limit: int = I64_MAX) -> int | None:
    """Return an integer from 0 to `limit`; a bool is none."""
    value = fields.get(name)
    return value if type(value) is int and 0 <= value <= limit else None


def flag(fields: Fields, name: str) -> bool | None:
    """Return a truth value."""
    value = fields.get(name)
    return value if isinstance(value, bool) else None


def opened(fields: Fields) -> Exchange | None:
    """Return the exchange that an `open` record begins; None where it lacks what a row must have."""
    return _begun(fields, at="at_ns", sent=Sent.MAYBE, state="in_flight")


def local(fields: Fields) -> Exchange | None:
    """Return the exchange of a `local` record: a call that never left."""
    began = "opened_at_ns" if "opened_at_ns" in fields else "at_ns"
    begun = _begun(fields, at=began, sent=Sent.NO, state="ended")
    if begun is None:
        return None
    return replace(_ended(begun, fields), sent=Sent.NO, model_asked=text(fields, "model"))


def closed(fields: Fields, begun: Exchange | None) -> Exchange | None:
    """Return the exchange that a `close` record ends; it stands alone where its open was not read."""
    known = begun or _begun(fields, at="opened_at_ns", sent=Sent.YES, state="in_flight")
    if known is None:
        return None
    ended = _ended(known, fields)
    sent = text(fields, "sent")
    return replace(ended, sent=Sent(sent) if sent in set(Sent) else Sent.YES)


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


def lost(exchange: Exchange, *, at_ns: int) -> tuple[Exchange, UsageEvent]:
    """Return what becomes of an exchange whose journal ended before it did: unknown, never zero."""
    reason = Reason.GATEWAY_DIED if exchange.sent is Sent.YES else Reason.MAY_NOT_HAVE_BEEN_SENT
    ended = replace(
        exchange, state="ended", reason=reason.value, ended_at_ns=max(at_ns, exchange.started_at_ns)
    )
    return ended, usage(ended, {"completeness": Completeness.UNKNOWN.value, "reason": reason.value})


def _begun(fields: Fields, *, at: str, sent: Sent, state: str) -> Exchange | None:
    x, instance, began = text(fields, "x"), text(fields, "instance"), natural(fields, at)
    if not x or not instance or began is None:
        return None
    return Exchange(
        id=x,
        instance_id=instance,
        run_id=text(fields, "run") or None,
        sent=sent,
        state=state,
        method=text(fields, "method") or "",
        path=text(fields, "path", limit=PATH_LIMIT) or "",
        family=text(fields, "family") or "unknown",
        stream=flag(fields, "stream"),
        model_asked=text(fields, "model") if at == "at_ns" else text(fields, "model_asked"),
        max_tokens=natural(fields, "max_tokens", limit=U64_MAX),
        choices=natural(fields, "choices", limit=U64_MAX),
        request_bytes=natural(fields, "request_bytes"),
        usage_asked_by_us=flag(fields, "usage_asked_by_us") or False,
        retry_count=natural(fields, "retry_count"),
        started_at_ns=began,
    )


def _ended(begun: Exchange, fields: Fields) -> Exchange:
    stream = flag(fields, "stream")
    request_bytes = natural(fields, "request_bytes")
    ended_at_ns = natural(fields, "at_ns")
    return replace(
        begun,
        state="ended",
        status=natural(fields, "status", limit=999),
        stream=begun.stream if stream is None else stream,
        reason=text(fields, "reason"),
        request_bytes=begun.request_bytes if request_bytes is None else request_bytes,
        response_bytes=natural(fields, "response_bytes"),
        unsynced=flag(fields, "unsynced") or False,
        ended_at_ns=begun.started_at_ns if ended_at_ns is None else ended_at_ns,
        first_token_ns=natural(fields, "first_token_ns"),
        latency_ns=natural(fields, "latency_ns"),
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
    if fault or said not in set(Completeness):
        return Completeness.UNKNOWN, reason or Reason.METER_FAULT.value
    completeness = Completeness(said)
    if completeness is not Completeness.EXACT:
        return completeness, reason or Reason.METER_FAULT.value
    if not counts.known:
        return Completeness.UNKNOWN, reason or Reason.NO_USAGE.value
    return completeness, None


def _raw(fields: Fields) -> str | None:
    """Return the provider's usage object as text; one too long to keep is left out rather than cut."""
    raw = text(fields, "raw_usage", limit=RAW_LIMIT + 1)
    return raw if raw is not None and len(raw) <= RAW_LIMIT else None

"""The documents of `GET /v1/agents/{name}/exchanges`: each call with the usage event that belongs to it. Pure."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kt_ledger.records import CallRow
from kt_ledger.values import Exchange, UsageEvent

VERSION = 1


def exchanges(calls: Sequence[tuple[Exchange, UsageEvent | None]]) -> dict[str, Any]:
    """Return the calls in their order; a call without an event has null counts and its own reason."""
    return {"schema_version": VERSION, "exchanges": [_one(call, event) for call, event in calls]}


def line(row: CallRow) -> dict[str, Any]:
    """Return a call as one line for a follower, with its number."""
    return {"schema_version": VERSION, "seq": row.seq, **_one(row.exchange, row.event)}


def _one(call: Exchange, event: UsageEvent | None) -> dict[str, Any]:
    document = {name: None if value is None else _plain(value) for name, value in asdict(call).items()}
    document |= {"completeness": None, "counts": {}, "input_tokens": None, "output_tokens": None}
    if event is None:
        return document
    return document | {
        "completeness": str(event.completeness),
        "reason": event.reason or call.reason,
        "counts": event.counts.to_json(),
        "input_tokens": event.counts.input_total,
        "output_tokens": event.counts.output_total,
        "model_answered": event.model_answered,
        "provider": event.provider,
        "request_id": event.request_id,
        "service_tier": event.service_tier,
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int) else str(value)

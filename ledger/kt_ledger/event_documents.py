"""What an event says, as JSON: the contract's payloads, and our own kinds. Pure: rows in, documents out.

Laws: field names and schema versions are the contract's, everything else is additive; no value that is a secret
enters here.
"""

import datetime
from collections.abc import Mapping
from typing import Any

from kt_ledger.records import InstanceRow, SourceTotals, TransitionRow
from kt_ledger.values import Source, UsageEvent

VERSION = 1
TRANSITION = "transition"
USAGE_UPDATE = "usage_update"
REGISTERED = "registered"
REMOVED = "removed"
CONFIGURATION = "configuration"
ENGINE = "engine"
PARKED = "parked"
DISK = "disk"
GATEWAY = "gateway"
HOOK = "hook"
BREACH = "budget_breach"


def complete(document: Mapping[str, Any], *, instance: str | None, at_ns: int) -> dict[str, Any]:
    """Return a document with what every event says: version, whose, when; what it says itself stands."""
    return {"schema_version": VERSION, "instance": instance, "at": moment(at_ns), **document}


def transition(instance: str, moved: TransitionRow) -> dict[str, Any]:
    """Return the contract's TransitionEvent."""
    return {
        "schema_version": VERSION,
        "instance": instance,
        "prior_state": str(moved.prior_state),
        "new_state": str(moved.new_state),
        "cause": moved.cause,
        "at": moment(moved.at_ns),
    }


def usage_update(instance: str | None, latest: UsageEvent, added: SourceTotals) -> dict[str, Any]:
    """Return the contract's UsageUpdateEvent about the latest event of a batch, and what the whole batch added.

    Counts that nobody reported are null. A real close that replaces an assumed loss adds tokens, and no event.
    """
    counts = latest.counts
    return {
        "schema_version": VERSION,
        "instance": instance,
        "event": {
            "instance": instance,
            "run_id": latest.run_id,
            "input_tokens": counts.input_total,
            "output_tokens": counts.output_total,
            "cached_tokens": counts.cache_read,
            "metering_source": str(latest.source),
            "sequence": int(latest.key) if latest.source is Source.SELF_REPORTED else None,
            "occurred_at": moment(latest.ended_at_ns),
            "key": latest.key,
            "completeness": str(latest.completeness),
            "reason": latest.reason,
        },
        "added": {
            "events": added.events,
            "unmeasured_calls": added.unmeasured_calls,
            "input_tokens": added.input_tokens,
            "output_tokens": added.output_tokens,
            "cached_tokens": added.cached_tokens,
        },
    }


def registered(row: InstanceRow) -> dict[str, Any]:
    """Return what a registration says."""
    return {"adapter_kind": row.kind, "instance_id": row.id}


def moment(at_ns: int) -> str:
    """Return a wall-clock time as RFC 3339 in UTC, whole seconds."""
    at = datetime.datetime.fromtimestamp(at_ns // 1_000_000_000, datetime.UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")

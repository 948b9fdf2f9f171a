"""What an event says, as JSON: the contract's payloads, and our own kinds. Pure: rows in, documents out.

Laws: field names and schema versions are the contract's, everything else is additive; no value that is a secret and
nothing that an agent wrote enters here.
"""

import datetime
from typing import Any

from kt_ledger.records import TransitionRow

TRANSITION = "transition"
VERSION = 1


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


def moment(at_ns: int) -> str:
    """Return a wall-clock time as RFC 3339 in UTC, whole seconds."""
    at = datetime.datetime.fromtimestamp(at_ns // 1_000_000_000, datetime.UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")

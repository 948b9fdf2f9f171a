"""What `list` and `show` tell of an agent's restarts. Pure."""

from typing import Any

from kt_ledger.records import InstanceRow, State
from kt_supervisor.engine.instance.restart_policy import History, Instant


def restarts(row: InstanceRow, *, policy: str, now: Instant) -> dict[str, Any]:
    """Return `restart_count` and `restart_policy`, the contract's fields, and `restart` where one is due or parked.

    `restart` is {due_in_s, waits_for} while one is due, {parked} where the agent is not brought back.
    """
    history = History.from_json(row.restart)
    facts: dict[str, Any] = {"restart_count": history.count, "restart_policy": policy}
    if row.state is not State.FAILED:
        return facts
    if history.due is not None:
        return facts | {
            "restart": {"due_in_s": round(history.remaining_s(now), 3), "waits_for": history.due.why}
        }
    return facts | ({"restart": {"parked": history.parked}} if history.parked else {})

"""The documents that `list`, `show` and `usage` print. Pure: rows and sums in, JSON out.

Laws: field names and schema versions are the contract's, everything else is additive; token fields are integers, the
sum of what was measured; dollars are absent while no price is known; totals are those of the declared source.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kt_ledger.event_documents import moment
from kt_ledger.records import InstanceRow, NoteCounts, RunRow, SourceTotals, State, UsageSummary
from kt_ledger.values import Source
from kt_manifest.configuration import options
from kt_manifest.contract import capability
from kt_manifest.contract.snapshot import ENGINE_OBSERVED, Adapter
from kt_supervisor.engine.telling import posture_view

FLEET_VERSION = 2
UNMAPPED = (
    "metering.base_url is mapped nowhere: unless the agent is pointed at its listener some other way, its traffic will "
    "not be seen"
)
KEY_LOST = (
    "the provider's key came from the environment of a start that nobody remembers any more: calls are refused until "
    "it is started again, or the key is in secrets.toml"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Everything that is known of one instance at one moment."""

    row: InstanceRow
    adapter: Adapter
    home: str
    run: RunRow | None = None
    used: UsageSummary = field(default_factory=UsageSummary)
    notes: NoteCounts = field(default_factory=NoteCounts)
    port: int | None = None
    upstream: str | None = None
    key_missing: bool = False
    restarts: Mapping[str, Any] = field(default_factory=dict)
    trouble: str | None = None
    waits_for: str | None = None

    @property
    def declared(self) -> Source:
        """Who counts, for the totals."""
        return Source(self.adapter.metering_source)

    @property
    def declared_totals(self) -> SourceTotals:
        """The sums of the declared source."""
        return self.used.totals.get(self.declared, SourceTotals())


def fleet(everyone: Sequence[Known], *, now_ns: int) -> dict[str, Any]:
    """Return `kt agent list --json`."""
    return {
        "schema_version": FLEET_VERSION,
        "totals": totals(everyone),
        "instances": [entry(known, now_ns=now_ns) for known in everyone],
    }


def shown(known: Known, *, now_ns: int) -> dict[str, Any]:
    """Return `kt agent show --json`."""
    facts = entry(known, now_ns=now_ns)
    facts["notes"] = {"counts": dict(known.notes.counts), "latest": dict(known.notes.latest)}
    facts["posture"] = posture_view.document(known.adapter)
    return {"schema_version": FLEET_VERSION, "instance": facts}


def used(known: Known) -> dict[str, Any]:
    """Return `kt agent usage NAME --json`."""
    return {
        "schema_version": FLEET_VERSION,
        "instance": known.row.name,
        "metering_source": str(known.declared),
        "usage": usage(known),
    }


def used_by_all(everyone: Sequence[Known]) -> dict[str, Any]:
    """Return `kt agent usage --json`."""
    return {"schema_version": FLEET_VERSION, "totals": totals(everyone)}


def used_by_removed(everyone: Sequence[Known]) -> dict[str, Any]:
    """Return `kt agent usage --removed --json`: what those used whose names are free again."""
    return {
        "schema_version": FLEET_VERSION,
        "totals": totals(everyone),
        "removed": [
            {
                "name": known.row.name,
                "id": known.row.id,
                "removed_at": None if known.row.removed_at_ns is None else moment(known.row.removed_at_ns),
                "metering_source": str(known.declared),
                "usage": usage(known),
            }
            for known in everyone
        ],
    }


def totals(everyone: Sequence[Known]) -> dict[str, Any]:
    """Return the sums of all declared sources."""
    sums = [known.declared_totals for known in everyone]
    cached = [one.cached_tokens for one in sums if one.cached_tokens is not None]
    words = {
        _covered(known) for known in everyone if known.declared_totals.events or _covered(known) != "all"
    }
    document: dict[str, Any] = {
        "total_input_tokens": sum(one.input_tokens or 0 for one in sums),
        "total_output_tokens": sum(one.output_tokens or 0 for one in sums),
        "dollars_partial": False,
        "unpriced_count": len(everyone),
        "usage_known": "all" if words <= {"all"} else "none" if words == {"none"} else "partial",
        "unmeasured_calls": sum(one.unmeasured_calls for one in sums),
    }
    return document | ({"total_cached_tokens": sum(cached)} if cached else {})


def usage(known: Known) -> dict[str, Any]:
    """Return a UsageView."""
    whole, run = known.declared_totals, known.used.run_totals.get(known.declared, SourceTotals())
    document: dict[str, Any] = {}
    for scope, sums in (("cumulative", whole), ("current_run", run)):
        document[f"{scope}_input_tokens"] = sums.input_tokens or 0
        document[f"{scope}_output_tokens"] = sums.output_tokens or 0
        if sums.cached_tokens is not None:
            document[f"{scope}_cached_tokens"] = sums.cached_tokens
    return document | {
        "usage_known": _covered(known),
        "unmeasured_calls": whole.unmeasured_calls,
        "unmeasured": dict(whole.unmeasured),
        "current_run_usage_known": _covered(known, run, uncounted=known.used.run_uncounted),
        "current_run_unmeasured_calls": run.unmeasured_calls,
        "in_flight": known.used.in_flight,
        "sources": {
            str(source): _source(sums, _said(source, sums, uncounted=known.used.uncounted))
            for source, sums in sorted(known.used.totals.items())
        },
    }


def _covered(known: Known, sums: SourceTotals | None = None, *, uncounted: bool | None = None) -> str:
    """Return how much the sums cover: calls that no listener sees are unknown, however few rows there are."""
    sums = known.declared_totals if sums is None else sums
    word = _said(known.declared, sums, uncounted=known.used.uncounted if uncounted is None else uncounted)
    if word == "all" and known.run is not None and known.adapter.goes_unseen():
        return _lower_bound(sums)
    return word


def _said(source: Source, sums: SourceTotals, *, uncounted: bool) -> str:
    """Return how much one source's sums cover: what it said and nobody could count is missing from its own."""
    if uncounted and source is Source.SELF_REPORTED and sums.usage_known == "all":
        return _lower_bound(sums)
    return sums.usage_known


def _lower_bound(sums: SourceTotals) -> str:
    return "none" if sums.input_tokens is None and sums.output_tokens is None else "partial"


def entry(known: Known, *, now_ns: int) -> dict[str, Any]:
    """Return a FleetEntry."""
    row = known.row
    document: dict[str, Any] = {
        "name": row.name,
        "kind": row.kind,
        "state": str(row.state),
        **(known.restarts or {"restart_count": 0, "restart_policy": None}),
        "budget": None,
        "usage": usage(known),
        "metering_source": str(known.declared),
        "agent_home": known.home,
        "id": row.id,
        "desired": row.desired,
        "capabilities": capabilities(known.adapter),
        "os": capability.this_os(),
    }
    if row.state is State.FAILED and row.cause:
        document["failed_cause"] = row.cause
    if known.run is not None:
        document |= _run(known.run, now_ns=now_ns)
    metering, remarks = _metering(known)
    if known.waits_for is not None:
        remarks.append(known.waits_for)
    if known.trouble is not None:
        remarks.append(known.trouble)
        document["observed"] = "unverifiable"
    document["metering"] = metering
    if metering["port"]:
        document["port"] = metering["port"]
    return document | ({"remarks": remarks} if remarks else {})


def capabilities(adapter: Adapter) -> dict[str, str]:
    """Return what an agent can do on this system."""
    levels = capability.project(adapter.declaration, capability.this_os())
    return {word: str(level) for word, level in levels.items()}


def _run(run: RunRow, *, now_ns: int) -> dict[str, Any]:
    facts: dict[str, Any] = {"run_id": run.id, "started_at_ns": run.started_at_ns, "started_at": None}
    if run.state == "ended":
        facts["ended_at_ns"] = run.ended_at_ns
        facts["ended_at"] = None if run.ended_at_ns is None else moment(run.ended_at_ns)
        facts["exit"] = {"code": run.exit_code, "signal": run.exit_signal}
    elif run.agent_pid is not None:
        facts["pid"] = run.agent_pid
        facts["uptime_s"] = max(0, now_ns - run.started_at_ns) // 1_000_000_000
    facts["started_at"] = moment(run.started_at_ns)
    return facts


def _metering(known: Known) -> tuple[dict[str, Any], list[str]]:
    mapped = known.adapter.maps(options.BASE_URL) or known.adapter.maps(options.ORIGIN)
    observed = known.adapter.metering_source == ENGINE_OBSERVED
    remarks = [UNMAPPED] if observed and not mapped else []
    if known.key_missing and known.row.state in (State.RUNNING, State.PAUSED):
        remarks.append(KEY_LOST)
    port = known.port if known.port is not None else known.row.port
    facts = {
        "port": port,
        "upstream": known.upstream,
        "mapped": mapped,
        "notice": remarks[0] if remarks else None,
    }
    return facts, remarks


def _source(sums: SourceTotals, covered: str) -> dict[str, Any]:
    return {
        "events": sums.events,
        "exact": sums.exact,
        "partial": sums.partial,
        "estimated": sums.estimated,
        "unmeasured_calls": sums.unmeasured_calls,
        "unmeasured": dict(sums.unmeasured),
        "input_tokens": sums.input_tokens,
        "output_tokens": sums.output_tokens,
        "cached_tokens": sums.cached_tokens,
        "reasoning_tokens": sums.reasoning_tokens,
        "usage_known": covered,
    }

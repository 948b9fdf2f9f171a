"""What runs: keepers that belong to nobody, and versions that differ."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kt_ledger.layout import RunLayout, StateLayout
from kt_ledger.version import VERSION
from kt_supervisor.doctor.finding import Finding, bad, ok, warn
from kt_supervisor.engine.run import adoption, run_records


@dataclass(frozen=True, slots=True)
class LiveKeeper:
    """A keeper that lives, by its own record."""

    run_id: str
    pid: int
    agent: str


def keepers(files: StateLayout) -> list[LiveKeeper]:
    """Return the keepers of this state directory that live: exactly those processes, and no later ones."""
    folders = sorted(files.runs.iterdir()) if files.runs.is_dir() else []
    found = []
    for run in map(RunLayout, folders):
        record = run_records.read_json(run.record) or {}
        if adoption.is_alive(record.get("keeper_pid"), record.get("keeper_start_ticks")):
            owner = run_records.owner(run) or {}
            found.append(LiveKeeper(run.root.name, int(record["keeper_pid"]), str(owner.get("name", "?"))))
    return found


def judge_keepers(found: Collection[LiveKeeper], known: Collection[str] | None) -> Finding:
    """Judge the keepers that live; `known` are the Runs that the engine has under way, None where none was asked."""
    if known is None:
        return ok("keepers", f"{len(found)} alive")
    orphans = [keeper for keeper in found if keeper.run_id not in known]
    if orphans:
        named = ", ".join(
            f"process {keeper.pid} (agent {keeper.agent}, run {keeper.run_id})" for keeper in orphans[:3]
        )
        return bad(
            "keepers",
            f"{len(orphans)} of no Run under way: {named}",
            "look at that agent (`kt agent show`), then end the process: its agent ends with it",
        )
    return ok("keepers", f"{len(found)} alive, each of a Run under way")


def judge_versions(engine: str, gateway: str | None) -> Finding:
    """Judge which versions work together; `VERSION` is the one that looks."""
    found = f"engine {engine}, gateway {gateway or 'none'}"
    if engine != VERSION:
        return warn("versions", f"{found}, this kt {VERSION}", "kt engine upgrade: agents run on")
    if gateway not in (None, VERSION):
        return warn(
            "versions",
            found,
            "nothing: it is followed once no Run depends on a key that it alone knows; start those agents again",
        )
    return ok("versions", found)


def judge_engine(facts: Mapping[str, Any] | None) -> Finding:
    """Judge the engine and its gateway by what the engine says of itself."""
    if facts is None:
        return ok("engine", "does not run: the next command starts it")
    if facts.get("store") != "ok":
        return bad(
            "engine",
            f"runs without its ledger: {facts.get('store')}",
            "see the message; usage waits in the logs",
        )
    gateway = facts.get("gateway")
    if gateway and not gateway.get("journal_healthy", True):
        return bad("engine", "the gateway cannot write its journal: calls are refused", "look at the disk")
    return ok("engine", f"runs (process {facts.get('pid')}), ledger and journal can be written")

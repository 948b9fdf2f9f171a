"""All checks, in the order in which they are told."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from kt_ledger.clock import Clock
from kt_ledger.layout import StateLayout
from kt_supervisor.doctor import machine, network, processes, settings, state
from kt_supervisor.doctor.finding import Finding, warn
from kt_supervisor.engine.gateway import ports


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """What only the engine knows: itself, the Runs under way, the ports that agents have, how its clock moved."""

    engine: Mapping[str, Any]
    runs: Collection[str] = ()
    wanted_ports: Mapping[int, str] = field(default_factory=dict)
    served_ports: Collection[int] | None = None
    jumped_ns: int | None = None


def examine(files: StateLayout, *, clock: Clock, user: str, inside: Inside | None = None) -> list[Finding]:
    """Return all findings; `inside` is what the engine adds, where it is the engine that looks. Blocks for a moment."""
    newest_ns = machine.newest(files.database, files.engine_record)
    gateway = (inside.engine.get("gateway") or {}) if inside else {}
    checks = (
        lambda: processes.judge_engine(inside.engine if inside else None),
        lambda: (
            processes.judge_versions(str(inside.engine["version"]), gateway.get("version"))
            if inside
            else None
        ),
        lambda: state.disk(files.root),
        lambda: state.filesystem(files.root),
        lambda: state.permissions(files),
        lambda: state.secrets(files),
        lambda: settings.files_of_settings(files),
        lambda: state.sockets(files),
        lambda: processes.judge_keepers(processes.keepers(files), inside.runs if inside else None),
        lambda: network.judge_ports(
            network.listening(),
            own_block=network.block(files.root),
            wanted=inside.wanted_ports if inside else {},
            served=inside.served_ports if inside else None,
            outgoing=ports.ephemeral(),
        ),
        machine.sqlite,
        machine.cgroups,
        lambda: machine.clock(
            wall_ns=clock.wall_ns(), newest_ns=newest_ns, jumped_ns=inside.jumped_ns if inside else None
        ),
        machine.descriptors,
        lambda: machine.linger(user),
    )
    return [finding for check in checks if (finding := _looked(check)) is not None]


def _looked(check: Any) -> Finding | None:
    """Return what a check finds; one that cannot look says so and keeps no other from looking."""
    try:
        found: Finding | None = check()
    except OSError as error:
        return warn("doctor", f"a check could not look: {error}", "see the message")
    return found

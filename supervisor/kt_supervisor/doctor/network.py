"""Ports: who listens where listeners of ours should be."""

from collections.abc import Collection, Mapping
from itertools import islice
from pathlib import Path

from kt_supervisor.doctor.finding import Finding, bad, ok, warn
from kt_supervisor.engine.gateway import ports

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENING = "0A"  # TCP_LISTEN (include/net/tcp_states.h)


def listening(tables: Collection[Path] = TABLES) -> set[int] | None:
    """Return the ports on which anybody listens (proc_net_tcp(5)); None where that is not known."""
    found: set[int] = set()
    read = False
    for table in tables:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        read = True
        found |= {
            int(fields[1].rpartition(":")[2], 16)
            for fields in map(str.split, lines)
            if fields[3] == LISTENING
        }
    return found if read else None


def block(state_dir: Path) -> list[int]:
    """Return the ports of a state directory's own block."""
    return list(islice(ports.candidates(state_dir, taken=(), outgoing=range(0)), ports.BLOCK))


def judge_ports(
    open_ones: Collection[int] | None,
    *,
    own_block: Collection[int],
    wanted: Mapping[int, str],
    served: Collection[int] | None,
    outgoing: range,
) -> Finding:
    """Judge ports.

    Args:
        open_ones: those on which anybody listens; None: not known.
        own_block: where listeners of this state directory are put.
        wanted: the ports of agents, with their names.
        served: those that our gateway serves; None: nobody was asked.
        outgoing: those that the kernel gives to outgoing calls.
    """
    if open_ones is None:
        return ok("ports", "who listens is not known on this system")
    if served is not None:
        lost = {port: name for port, name in wanted.items() if port in open_ones and port not in served}
        if lost:
            named = ", ".join(f"{port} of {name}" for port, name in sorted(lost.items())[:3])
            return bad(
                "ports", f"taken by other programs: {named}", "end what holds them, or start the agent again"
            )
    strangers = [
        port for port in own_block if port in open_ones and port not in wanted and port not in (served or ())
    ]
    if len(strangers) > len(own_block) // 2:
        return warn(
            "ports",
            f"{len(strangers)} of {len(own_block)} are taken by others",
            "end some of what listens there",
        )
    inside = [port for port in own_block if port in outgoing]
    if inside:
        return warn(
            "ports",
            f"the kernel gives {len(inside)} of our ports to outgoing calls",
            "set net.ipv4.ip_local_port_range back to begin at 32768",
        )
    taken = f", {len(strangers)} of them taken by others" if strangers else ""
    return ok("ports", f"{min(own_block)}-{max(own_block)}{taken}")

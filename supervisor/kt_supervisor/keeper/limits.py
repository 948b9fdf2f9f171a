"""What an agent may use, and who really enforces it: its cgroup, an rlimit, or nobody, and then why.

rlimits count each process for itself, cgroups the whole tree. Memory without a cgroup is RLIMIT_DATA (Linux 4.7:
private writable memory, mmap included), not RLIMIT_AS: JavaScript engines and Go reserve address space by the gigabyte
without touching it. RLIMIT_NPROC counts every process of the *user*, ours and the other agents' included, and does not
hold for root, so it is not used; RLIMIT_CPU is seconds of a life, no share.
"""

import sys
from collections.abc import Callable

from kt_supervisor.keeper import cgroup, system
from kt_supervisor.keeper.specification import Specification

CGROUP, RLIMIT = "cgroup", "rlimit"
_PERIOD_US = 100_000
_SHOWN = {"memory_bytes": "memory", "cpu_cores": "cpu", "pids": "pids", "nofile": "nofile"}
_WHY_NO_RLIMIT = {
    "cpu_cores": "an rlimit counts seconds of a life, no share",
    "pids": "RLIMIT_NPROC counts all processes of the user",
}


def enforce(
    spec: Specification, pid: int, *, note: Callable[[str], None]
) -> tuple[cgroup.Leaf | None, dict[str, str]]:
    """Put the process `pid`, which has not exec'd yet, into a cgroup of its own where that can be, and limit it.

    Returns:
        The cgroup, and by limit ("memory", "cpu", "pids", "nofile"): "cgroup", "rlimit", or "not enforced: why".
    """
    leaf, why = _leaf_with(spec.cgroup_parent, spec.run_id, pid)
    if why and spec.cgroup_parent is not None:
        note(why)
    return leaf, {
        _SHOWN[name]: _apply_one(name, value, pid, leaf, why) for name, value in spec.limits.items()
    }


def _leaf_with(parent: str | None, run_id: str, pid: int) -> tuple[cgroup.Leaf | None, str]:
    if parent is None:
        return None, "no cgroup to make one in"
    try:
        leaf = cgroup.create(parent, f"kt-{run_id}")
    except OSError as error:
        return None, f"no cgroup can be made in {parent}: {error.strerror or error}"
    try:
        leaf.enter(pid)
    except OSError as error:
        leaf.remove()
        return None, f"{leaf.path} cannot be entered: {error.strerror or error}"
    return leaf, ""


def _apply_one(name: str, value: float, pid: int, leaf: cgroup.Leaf | None, why_no_leaf: str) -> str:
    why = why_no_leaf
    if leaf is not None and name != "nofile":
        try:
            leaf.write(*_control(name, value))
            return CGROUP
        except OSError as error:
            why = f"the cgroup has no {_control(name, value)[0]} ({error.strerror or error})"
    if name in _WHY_NO_RLIMIT:
        return f"not enforced: {why}, and {_WHY_NO_RLIMIT[name]}"
    refused = _rlimit(name, int(value), pid)
    return f"not enforced: {refused}" if refused else RLIMIT


def _control(name: str, value: float) -> tuple[str, str]:
    if name == "cpu_cores":
        # The kernel takes 1 ms at least (cgroup-v2, cpu.max).
        return "cpu.max", f"{max(1000, round(value * _PERIOD_US))} {_PERIOD_US}"
    return ("memory.max" if name == "memory_bytes" else "pids.max"), str(int(value))


def _rlimit(name: str, value: int, pid: int) -> str:
    if not system.LINUX or sys.platform != "linux":
        return "this system cannot limit another process"
    import resource  # only Runs with such a limit pay for it

    kind = resource.RLIMIT_DATA if name == "memory_bytes" else resource.RLIMIT_NOFILE
    try:
        resource.prlimit(pid, kind, (value, value))
    except (OSError, ValueError) as error:
        _, hard = resource.prlimit(pid, kind)
        return f"{error}; the hard limit of this user is {hard}"
    return ""

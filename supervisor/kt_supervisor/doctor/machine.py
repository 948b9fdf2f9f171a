"""The system: SQLite, control groups, the clock, descriptors, and whether services outlive a log-out."""

import os
import sqlite3
import sys
from pathlib import Path

from kt_ledger import process_identity
from kt_supervisor.doctor.finding import Finding, bad, ok, warn

WAL_RESET_FIRST, WAL_RESET_LAST = (3, 7, 0), (3, 51, 2)
CONTROLLERS = ("cpu", "memory", "pids")
FEWEST_DESCRIPTORS = 1024
OLDEST_S = 1_735_689_600
"""The first second of 2025 (UTC): a clock before it was never set."""
JUMP_S = 2.0
AHEAD_S = 60.0


def sqlite() -> Finding:
    """Look at the library that holds the ledger."""
    return judge_sqlite(sqlite3.sqlite_version_info)


def judge_sqlite(version: tuple[int, ...]) -> Finding:
    """Judge a version of SQLite."""
    shown = ".".join(map(str, version))
    if WAL_RESET_FIRST <= version <= WAL_RESET_LAST:
        return ok(
            "sqlite",
            f"{shown}; its WAL-reset bug (3.7.0 to 3.51.2) needs two connections to one file, and the ledger has one",
        )
    return ok("sqlite", shown)


def cgroups(*, own: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> Finding:
    """Look at what may be limited and frozen as a whole: of the process that looks, so ask the engine for its own."""
    if not sys.platform.startswith("linux"):
        return warn("cgroups", "this system has none", "nothing: limits and pauses are best-effort here")
    try:
        lines = own.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        lines = []
    path = next((line[3:] for line in lines if line.startswith("0::")), None)
    if path is None or not (root / "cgroup.controllers").exists():
        return judge_cgroups(unified=False, writable=False, controllers=())
    folder = root / path.lstrip("/")
    try:
        controllers = tuple((folder / "cgroup.controllers").read_text().split())
    except OSError:
        controllers = ()
    writable = all(
        os.access(folder / name, os.W_OK) for name in ("", "cgroup.procs", "cgroup.subtree_control")
    )
    return judge_cgroups(unified=True, writable=writable, controllers=controllers)


def judge_cgroups(*, unified: bool, writable: bool, controllers: tuple[str, ...]) -> Finding:
    """Judge a control group by whether we may make others below it."""
    do = "kt engine install: systemd then delegates one; without it limits are rlimits, and a pause stops by signals"
    if not unified:
        return warn("cgroups", "no version 2 hierarchy", "boot with cgroup v2; until then limits are rlimits")
    if not writable:
        return warn("cgroups", "version 2, not delegated to us", do)
    missing = [name for name in CONTROLLERS if name not in controllers]
    if missing:
        return warn("cgroups", f"version 2, delegated without {', '.join(missing)}", do)
    return ok("cgroups", f"version 2, delegated with {', '.join(CONTROLLERS)}")


def clock(*, wall_ns: int, newest_ns: int | None = None, jumped_ns: int | None = None) -> Finding:
    """Judge the clock.

    Args:
        wall_ns: what it says now.
        newest_ns: when the newest file of ours was written, by the same clock.
        jumped_ns: how far it has moved against the monotonic one since the engine began; None: nobody knows.
    """
    if wall_ns < OLDEST_S * 10**9:
        return bad(
            "clock", f"it says {wall_ns // 10**9} s since 1970", "set it: windows and retention depend on it"
        )
    if sys.platform.startswith("linux") and not process_identity.boot_id():
        return warn("clock", "no boot id", "mount /proc: a reboot could not be told from a crash")
    if newest_ns is not None and newest_ns - wall_ns > AHEAD_S * 1e9:
        ahead_s = (newest_ns - wall_ns) / 1e9
        return warn(
            "clock", f"it went back: the ledger was written {ahead_s:.0f} s in the future", "check time sync"
        )
    if jumped_ns is not None and abs(jumped_ns) > JUMP_S * 1e9:
        found = f"it was set by {jumped_ns / 1e9:+.1f} s since the engine began"
        return warn("clock", found, "check time sync; durations are monotonic, so nothing else is wrong")
    return ok("clock", "plausible")


def uptime_ns(*, source: Path = Path("/proc/uptime")) -> int | None:
    """Return how long the machine has been up, suspended or not (proc_uptime(5)); None where it does not say."""
    try:
        return int(float(source.read_text().split()[0]) * 1e9)
    except (OSError, ValueError, IndexError):
        return None


def moved(before: tuple[int, int | None], now: tuple[int, int | None]) -> int | None:
    """Return how far the wall clock was set between two readings of (wall, uptime); None where that is not known."""
    if before[1] is None or now[1] is None:
        return None
    return (now[0] - before[0]) - (now[1] - before[1])


def newest(*paths: Path) -> int | None:
    """Return when the newest of these files was written; None where none is there."""
    found = [path.stat().st_mtime_ns for path in paths if path.exists()]
    return max(found, default=None)


def descriptors() -> Finding:
    """Look at how many files we may have open; the gateway and the agents inherit it."""
    import resource  # here, since Windows has none

    return judge_descriptors(*resource.getrlimit(resource.RLIMIT_NOFILE))


def judge_descriptors(soft: int, hard: int) -> Finding:
    """Judge a limit (-1: none): a call takes two of the gateway's, an agent three of the engine's."""
    found = f"{'no limit' if soft < 0 else soft} for each process, {'no limit' if hard < 0 else hard} at most"
    if 0 <= soft < FEWEST_DESCRIPTORS:
        return warn(
            "descriptors", found, f"raise it where kt is started: ulimit -n {FEWEST_DESCRIPTORS} or more"
        )
    return ok("descriptors", found)


def linger(
    user: str, *, booted: Path = Path("/run/systemd/system"), kept: Path = Path("/var/lib/systemd/linger")
) -> Finding:
    """Look at whether the user's services run while nobody is logged in (loginctl(1))."""
    if not booted.is_dir():
        return ok("linger", "no systemd here: nothing ends at a log-out")
    if user == "root" or (kept / user).exists():
        return ok("linger", f"services of {user} outlive a log-out")
    return warn("linger", f"services of {user} end at a log-out", "loginctl enable-linger")

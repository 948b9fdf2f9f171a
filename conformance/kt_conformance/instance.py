"""`tck-subject` in one section: the verbs, and what can be seen of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kt_client import place
from kt_conformance import processes
from kt_conformance.bounded_client import BoundedClient
from kt_conformance.deadline import Deadline
from kt_conformance.report import SectionFailed
from kt_conformance.rig import NAME
from kt_manifest.contract.snapshot import Adapter

STOP_S = 5.0
"""What the agent has to end before it is forced."""

Transition = tuple[str, str, dict[str, Any]]


class Instance:
    """One registered agent. Refusals of the engine come as the library's errors."""

    def __init__(self, kt: BoundedClient, adapter: Adapter, deadline: Deadline) -> None:
        self.kt = kt
        self.adapter = adapter
        self.deadline = deadline
        self.caller: Callable[[], dict[str, str]] = place.caller
        kt.register(NAME, adapter=adapter.to_json())
        self.home = Path(self.entry()["agent_home"])

    # -- verbs -------------------------------------------------------------------------------------------------
    def set(self, key: str, value: str) -> None:
        """Set one setting."""
        self.kt.config_set(NAME, key, value)

    def start(self) -> None:
        """Start it, with the environment of its `caller`; return when it runs."""
        self.kt.start(NAME, env=self.caller())

    def stop(self, *, within_s: float = STOP_S) -> None:
        """Stop it and everything that it started; what is left after `within_s` is forced to end."""
        self.kt.stop(NAME, timeout_s=within_s)

    def send(self, text: str) -> None:
        """Send it a line."""
        self.kt.send(NAME, text + "\n")

    # -- what the engine says ----------------------------------------------------------------------------------
    def entry(self) -> dict[str, Any]:
        """Return all that is known of it."""
        entry: dict[str, Any] = self.kt.show(NAME)["instance"]
        return entry

    @property
    def state(self) -> str:
        """Its state."""
        return str(self.entry()["state"])

    @property
    def run_id(self) -> str:
        """Its latest Run."""
        return str(self.entry()["run_id"])

    @property
    def pid(self) -> int:
        """The process that the adapter's start became. Raises SectionFailed where it runs no more."""
        pid = self.entry().get("pid")
        if not pid:
            raise SectionFailed(
                f"got a subject that has ended (state {self.state}), wanted it to run; {self.last_words()}"
            )
        return int(pid)

    def wait_for(self, *states: str, within_s: float | None = None) -> dict[str, Any]:
        """Return its entry once it is in one of these states."""

        def there() -> dict[str, Any] | None:
            entry = self.entry()
            return entry if entry["state"] in states else None

        return self.deadline.until(there, f"the state {' or '.join(states)}", within_s=within_s)

    def transitions(self) -> list[Transition]:
        """Return its changes of state, in order: from, to, cause."""
        events = self.kt.events(instance=NAME)
        return [(e["prior_state"], e["new_state"], e["cause"]) for e in events if e["kind"] == "transition"]

    def output(self, *, run: str | None = None, streams: tuple[str, ...] = ("out", "err")) -> list[str]:
        """Return the lines that it printed."""
        return [str(line["text"]) for line in self.kt.logs(NAME, streams=streams, run=run)]

    def last_words(self) -> str:
        """Return what it printed last, for a reason."""
        lines = self.output()[-3:]
        return (
            f"its last lines: {' | '.join(line[:160] for line in lines)}" if lines else "it printed nothing"
        )

    def calls(self) -> list[dict[str, Any]]:
        """Return its calls as the gateway recorded them."""
        calls: list[dict[str, Any]] = self.kt.calls(NAME, limit=1000)["exchanges"]
        return calls

    def usage(self) -> dict[str, Any]:
        """Return what it used, by the ledger."""
        usage: dict[str, Any] = self.kt.usage(NAME)["usage"]
        return usage

    # -- what the system says ----------------------------------------------------------------------------------
    def tree(self) -> list[processes.Process]:
        """Return its processes: everything below its keeper, the agent itself first."""
        pid = self.pid
        leader = processes.read(pid)
        if leader is None:
            return []
        below = processes.descendants(leader.parent)
        return sorted(below, key=lambda process: process.pid != pid)

    def used_ticks(self) -> int | None:
        """Return the processor time that its processes have used, in clock ticks; None where it has ended."""
        leader = processes.read(int(self.entry().get("pid") or 0))
        if leader is None:
            return None
        return leader.ticks + sum(process.ticks for process in processes.descendants(leader.pid))

    def writings(self) -> dict[str, tuple[int, int]]:
        """Return the files in its Agent Home, with their sizes and times: what it does there shows."""
        found = {}
        for path in self.home.rglob("*"):
            try:
                facts = path.lstat()
            except OSError:
                continue  # gone between the two looks
            found[str(path.relative_to(self.home))] = (facts.st_size, facts.st_mtime_ns)
        return found

"""How a Run ended, as its keeper recorded it, and what that means for its instance. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from kt_ledger.records import State
from kt_supervisor.engine.instance import restart_policy
from kt_supervisor.engine.instance.lifecycle import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """A keeper's `exit.json` (`kt_supervisor.keeper`). Everything None: nobody recorded anything.

    `stop_command` says how the adapter's own stop command ended; None where none was run. `code_unknown` says why there
    is neither a code nor a signal, where the agent did run.
    """

    code: int | None = None
    signal: int | None = None
    spawn_error: str | None = None
    stop_asked: bool = False
    forced: bool = False
    survivors: tuple[int, ...] = ()
    ended_at_ns: int | None = None
    code_unknown: str | None = None
    oom_killed: bool = False
    stop_command: str | None = None

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Self:
        """Read a record; fields of another version are ignored, fields that make no sense are unknown."""

        def whole(field: str) -> int | None:
            value = facts.get(field)
            return value if isinstance(value, int) and not isinstance(value, bool) else None

        def words(field: str) -> str | None:
            value = facts.get(field)
            return str(value) if value else None

        named = facts.get("survivors")
        return cls(
            code=whole("code"),
            signal=whole("signal"),
            spawn_error=words("spawn_error"),
            stop_asked=bool(facts.get("stop_asked")),
            forced=bool(facts.get("forced")),
            survivors=tuple(pid for pid in named if isinstance(pid, int)) if isinstance(named, list) else (),
            ended_at_ns=whole("ended_at_ns"),
            code_unknown=words("code_unknown"),
            oom_killed=bool(facts.get("oom_killed")),
            stop_command=_command(facts.get("stop_command")),
        )

    def describe(self) -> str:
        """Return it in words."""
        memory = ", out of memory" if self.oom_killed else ""
        if self.spawn_error:
            return self.spawn_error
        if self.signal is not None:
            return f"ended by signal {self.signal}{memory}"
        if self.code is not None:
            return f"exited with code {self.code}{memory}"
        return f"its exit is not known{f': {self.code_unknown}' if self.code_unknown else ''}"


def _command(facts: object) -> str | None:
    """Return how the adapter's own stop command ended, in words."""
    if not isinstance(facts, dict):
        return None
    if facts.get("timed_out"):
        return "took too long"
    if facts.get("error"):
        return str(facts["error"])
    signal = facts.get("signal")
    return f"ended with code {facts.get('code')}" if signal is None else f"was ended by signal {signal}"


def meaning(state: State, ended: Exit, *, policy: str) -> tuple[Event, dict[str, Any]]:
    """Return the event that an exit record is in `state`, under a restart policy, and the cause that is told.

    | state | record | event | cause |
    |---|---|---|---|
    | stopping | any | exited | stop-graceful, or stop-forced |
    | starting | any | exited | launch-error |
    | running, paused | the keeper was asked by somebody else | ended-apart | as for stopping |
    | running, paused | code 0 | finished, under `always` exited | exited |
    | running, paused | anything else | exited | crashed |
    """
    stopped: dict[str, Any] = {"kind": "stop-graceful"}
    if ended.forced:
        stopped = {"kind": "stop-forced", "detail": ended.describe()}
    if ended.stop_command is not None:
        stopped["stop_command"] = ended.stop_command
    if state is State.STOPPING:
        return Event.EXITED, stopped
    if state is State.STARTING:
        return Event.EXITED, {"kind": "launch-error", "detail": ended.describe()}
    if ended.stop_asked:
        return Event.ENDED_APART, stopped
    if ended.code == 0:
        event = Event.EXITED if policy == restart_policy.ALWAYS else Event.FINISHED
        return event, {"kind": "exited", "code": 0}
    return Event.EXITED, {"kind": "crashed", "detail": ended.describe()}

"""The lifecycle of an agent instance as one table: (state, event) to (next state, command). Knows no process.

An operator's verb that the table does not have is refused with one uniform error; an event of the engine's own that it
does not have is a mistake of the engine.
"""

from dataclasses import dataclass
from enum import StrEnum

from kt_ledger.records import State


class Event(StrEnum):
    """What can happen to an instance. The first two are an operator's verbs."""

    START = "start"
    STOP = "stop"
    READY = "ready"  # the agent was alive for the whole readiness window
    LAUNCH_FAILED = "launch-failed"
    EXITED = "exited"  # the keeper's exit record is there, and says no success
    FINISHED = "finished"  # the same, with code 0: the agent was done
    ENDED_APART = (
        "ended-apart"  # the same, and its keeper had been asked for it by somebody else than this engine
    )
    LOST = "lost"  # nothing of the Run is left, and nobody recorded how it ended


class Command(StrEnum):
    """What the engine does about it."""

    LAUNCH = "launch"  # listener, files, keeper, readiness
    SERVE = "serve"  # follow its output and its traffic
    TERMINATE = "terminate"  # withdraw its grant, then have the keeper end its tree
    SETTLE = "settle"  # fold its logs to their end, then let the keeper go


@dataclass(frozen=True, slots=True)
class Step:
    """Where it goes, and what is done."""

    state: State
    command: Command


TABLE: dict[State, dict[Event, Step]] = {
    State.REGISTERED: {Event.START: Step(State.STARTING, Command.LAUNCH)},
    State.STARTING: {
        Event.READY: Step(State.RUNNING, Command.SERVE),
        Event.LAUNCH_FAILED: Step(State.FAILED, Command.SETTLE),
        Event.EXITED: Step(State.FAILED, Command.SETTLE),
        Event.LOST: Step(State.FAILED, Command.SETTLE),
    },
    State.RUNNING: {
        Event.STOP: Step(State.STOPPING, Command.TERMINATE),
        Event.EXITED: Step(State.FAILED, Command.SETTLE),
        Event.FINISHED: Step(State.STOPPED, Command.SETTLE),
        Event.ENDED_APART: Step(State.STOPPED, Command.SETTLE),
        Event.LOST: Step(State.FAILED, Command.SETTLE),
    },
    State.PAUSED: {
        Event.STOP: Step(State.STOPPING, Command.TERMINATE),
        Event.EXITED: Step(State.FAILED, Command.SETTLE),
        Event.FINISHED: Step(State.STOPPED, Command.SETTLE),
        Event.ENDED_APART: Step(State.STOPPED, Command.SETTLE),
        Event.LOST: Step(State.FAILED, Command.SETTLE),
    },
    State.STOPPING: {
        Event.STOP: Step(
            State.STOPPING, Command.TERMINATE
        ),  # asked again: a stop that could not be confirmed
        Event.EXITED: Step(State.STOPPED, Command.SETTLE),
        Event.LOST: Step(State.STOPPED, Command.SETTLE),
    },
    State.STOPPED: {Event.START: Step(State.STARTING, Command.LAUNCH)},
    State.FAILED: {Event.START: Step(State.STARTING, Command.LAUNCH)},
}


class InvalidTransition(Exception):
    """The verb does not apply to the state that the agent is in."""

    exit_code = 4

    def __init__(self, name: str, *, verb: Event, state: State) -> None:
        self.verb = verb
        self.state = state
        wanted = ", ".join(known for known in TABLE if verb in TABLE[known])
        super().__init__(
            f"cannot {verb} {name}: got state {state}, wanted one of {wanted}; look with `kt agent show {name}`"
        )


def step(name: str, *, state: State, event: Event) -> Step:
    """Return what follows.

    Raises:
        InvalidTransition: the table has no such step.
    """
    found = TABLE[state].get(event)
    if found is None:
        raise InvalidTransition(name, verb=event, state=state)
    return found

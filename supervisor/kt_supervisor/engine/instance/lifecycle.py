"""The lifecycle of an agent instance as one table: state and event to the next state. Knows no process.

An operator's verb that the table does not have is refused with one uniform error; an event of the engine's own that it
does not have is a mistake of the engine. One edge has a condition that the table cannot say: `stop` in `failed` is the
event `cancelled`, and applies only while a restart is due.
"""

from enum import StrEnum

from kt_ledger.records import State


class Event(StrEnum):
    """What can happen to an instance."""

    # What an operator asks for.
    START = "start"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    RESTART = "restart"
    CANCELLED = "cancelled"  # a stop, while a restart was due
    # What the engine sees or does.
    BACK = "back"  # a restart that was due begins
    READY = "ready"  # the agent is what its adapter calls ready
    LAUNCH_FAILED = "launch-failed"
    EXITED = "exited"  # the keeper's exit record is there, and says no success
    FINISHED = "finished"  # the same, with code 0: the agent was done
    ENDED_APART = "ended-apart"  # the same, and somebody else than this engine had asked its keeper for it
    LOST = "lost"  # nothing of the Run is left, and nobody recorded how it ended


VERBS = (Event.START, Event.STOP, Event.PAUSE, Event.RESUME, Event.RESTART)

_ENDS_ITSELF = {
    Event.EXITED: State.FAILED,
    Event.FINISHED: State.STOPPED,
    Event.ENDED_APART: State.STOPPED,
    Event.LOST: State.FAILED,
}

TABLE: dict[State, dict[Event, State]] = {
    State.REGISTERED: {
        Event.START: State.STARTING,
        Event.RESTART: State.STARTING,
    },
    State.STARTING: {
        Event.READY: State.RUNNING,
        Event.LAUNCH_FAILED: State.FAILED,
        Event.EXITED: State.FAILED,
        Event.LOST: State.FAILED,
        Event.STOP: State.STOPPING,  # an agent may take minutes to be ready: a stop need not wait for it
        Event.RESTART: State.STOPPING,
    },
    State.RUNNING: {
        Event.STOP: State.STOPPING,
        Event.PAUSE: State.PAUSED,
        Event.RESTART: State.STOPPING,
        **_ENDS_ITSELF,
    },
    State.PAUSED: {
        Event.STOP: State.STOPPING,
        Event.RESUME: State.RUNNING,
        Event.RESTART: State.STOPPING,
        **_ENDS_ITSELF,
    },
    State.STOPPING: {
        Event.STOP: State.STOPPING,  # asked again: a stop that could not be confirmed
        Event.EXITED: State.STOPPED,
        Event.LOST: State.STOPPED,
    },
    State.STOPPED: {
        Event.START: State.STARTING,
        Event.RESTART: State.STARTING,
    },
    State.FAILED: {
        Event.START: State.STARTING,
        Event.RESTART: State.STARTING,
        Event.BACK: State.STARTING,
        Event.CANCELLED: State.STOPPED,
    },
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


def step(name: str, *, state: State, event: Event) -> State:
    """Return the state that follows.

    Raises:
        InvalidTransition: the table has no such step.
    """
    found = TABLE[state].get(event)
    if found is None:
        raise InvalidTransition(name, verb=event, state=state)
    return found

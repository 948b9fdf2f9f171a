from typing import Any

import pytest

from kt_ledger.records import State
from kt_supervisor.engine.instance.lifecycle import Event
from kt_supervisor.engine.run import ending
from kt_supervisor.engine.run.ending import Exit


@pytest.mark.parametrize(
    ("state", "ended", "policy", "event", "cause"),
    [
        (State.STOPPING, Exit(code=0), "always", Event.EXITED, {"kind": "stop-graceful"}),
        (
            State.STOPPING,
            Exit(signal=9, forced=True),
            "always",
            Event.EXITED,
            {"kind": "stop-forced", "detail": "ended by signal 9"},
        ),
        (
            State.STARTING,
            Exit(code=3),
            "always",
            Event.EXITED,
            {"kind": "launch-error", "detail": "exited with code 3"},
        ),
        (State.RUNNING, Exit(code=0), "on-failure", Event.FINISHED, {"kind": "exited", "code": 0}),
        (State.RUNNING, Exit(code=0), "never", Event.FINISHED, {"kind": "exited", "code": 0}),
        (State.RUNNING, Exit(code=0), "always", Event.EXITED, {"kind": "exited", "code": 0}),
        (
            State.PAUSED,
            Exit(code=7),
            "on-failure",
            Event.EXITED,
            {"kind": "crashed", "detail": "exited with code 7"},
        ),
        (State.RUNNING, Exit(stop_asked=True), "always", Event.ENDED_APART, {"kind": "stop-graceful"}),
        (
            State.RUNNING,
            Exit(code_unknown="its keeper died"),
            "on-failure",
            Event.EXITED,
            {"kind": "crashed", "detail": "its exit is not known: its keeper died"},
        ),
        (
            State.RUNNING,
            Exit(signal=9, oom_killed=True),
            "never",
            Event.EXITED,
            {"kind": "crashed", "detail": "ended by signal 9, out of memory"},
        ),
    ],
)
def test_an_end_means_what_its_state_and_its_record_say(
    state: State, ended: Exit, policy: str, event: Event, cause: dict[str, Any]
) -> None:
    assert (event, cause) == ending.meaning(state, ended, policy=policy)


def test_a_record_of_another_version_is_read_as_far_as_it_makes_sense() -> None:
    facts = {"code": True, "signal": "9", "survivors": [1, "2"], "forced": 1, "more": {}}

    assert Exit(survivors=(1,), forced=True) == Exit.from_json(facts)


def test_nothing_recorded_is_an_unknown_end() -> None:
    assert "its exit is not known" == Exit.from_json({}).describe()

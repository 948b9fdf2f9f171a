import pytest

from kt_ledger.records import LIVE_STATES, State
from kt_supervisor.engine.instance import lifecycle
from kt_supervisor.engine.instance.lifecycle import VERBS, Event, InvalidTransition

WANTED = {
    (State.REGISTERED, Event.START): State.STARTING,
    (State.STOPPED, Event.START): State.STARTING,
    (State.FAILED, Event.START): State.STARTING,
    (State.STARTING, Event.STOP): State.STOPPING,
    (State.STARTING, Event.RESTART): State.STOPPING,
    (State.RUNNING, Event.STOP): State.STOPPING,
    (State.PAUSED, Event.STOP): State.STOPPING,
    (State.STOPPING, Event.STOP): State.STOPPING,
    (State.RUNNING, Event.PAUSE): State.PAUSED,
    (State.PAUSED, Event.RESUME): State.RUNNING,
    (State.REGISTERED, Event.RESTART): State.STARTING,
    (State.STOPPED, Event.RESTART): State.STARTING,
    (State.FAILED, Event.RESTART): State.STARTING,
    (State.RUNNING, Event.RESTART): State.STOPPING,
    (State.PAUSED, Event.RESTART): State.STOPPING,
}
ENDS = (Event.EXITED, Event.LOST)
BY_ITSELF = sorted(set(Event) - set(VERBS))


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_applies_where_the_contract_says_and_nowhere_else(state: State, verb: Event) -> None:
    wanted = WANTED.get((state, verb))

    if wanted is None:
        with pytest.raises(InvalidTransition) as refused:
            lifecycle.step("bot", state=state, event=verb)
        assert 4 == refused.value.exit_code
        assert f"cannot {verb} bot: got state {state}, wanted one of " in str(refused.value)
    else:
        assert wanted is lifecycle.step("bot", state=state, event=verb)


@pytest.mark.parametrize("state", sorted(LIVE_STATES))
@pytest.mark.parametrize("event", ENDS)
def test_every_live_state_can_end_in_either_way(state: State, event: Event) -> None:
    wanted = State.STOPPED if state is State.STOPPING else State.FAILED

    assert wanted is lifecycle.step("bot", state=state, event=event)


@pytest.mark.parametrize("state", sorted(set(State) - LIVE_STATES))
def test_nothing_happens_by_itself_to_what_does_not_run_but_a_restart_that_is_due(state: State) -> None:
    applies = {event for event in BY_ITSELF if event in lifecycle.TABLE[state]}

    assert applies == ({Event.BACK, Event.CANCELLED} if state is State.FAILED else set())


def test_every_state_of_the_contract_has_a_row() -> None:
    assert set(State) == set(lifecycle.TABLE)


def test_every_event_applies_somewhere() -> None:
    assert set(Event) == {event for row in lifecycle.TABLE.values() for event in row}

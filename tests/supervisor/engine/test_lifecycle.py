import pytest

from kt_ledger.records import LIVE_STATES, State
from kt_supervisor.engine import lifecycle
from kt_supervisor.engine.lifecycle import Event, InvalidTransition

WANTED = {
    (State.REGISTERED, Event.START): State.STARTING,
    (State.STOPPED, Event.START): State.STARTING,
    (State.FAILED, Event.START): State.STARTING,
    (State.RUNNING, Event.STOP): State.STOPPING,
    (State.PAUSED, Event.STOP): State.STOPPING,
    (State.STOPPING, Event.STOP): State.STOPPING,
}


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("verb", [Event.START, Event.STOP])
def test_a_verb_applies_where_the_contract_says_and_nowhere_else(state: State, verb: Event) -> None:
    wanted = WANTED.get((state, verb))

    if wanted is None:
        with pytest.raises(InvalidTransition) as refused:
            lifecycle.step("bot", state=state, event=verb)
        assert 4 == refused.value.exit_code
        assert f"cannot {verb} bot: got state {state}" in str(refused.value)
    else:
        assert wanted is lifecycle.step("bot", state=state, event=verb).state


@pytest.mark.parametrize("state", sorted(LIVE_STATES))
@pytest.mark.parametrize("event", [Event.EXITED, Event.LOST])
def test_every_live_state_can_end_in_either_way(state: State, event: Event) -> None:
    wanted = State.STOPPED if state is State.STOPPING else State.FAILED

    assert wanted is lifecycle.step("bot", state=state, event=event).state


@pytest.mark.parametrize("state", sorted(set(State) - LIVE_STATES))
@pytest.mark.parametrize("event", sorted(set(Event) - {Event.START}))
def test_what_does_not_run_only_starts(state: State, event: Event) -> None:
    with pytest.raises(InvalidTransition):
        lifecycle.step("bot", state=state, event=event)


def test_every_state_of_the_contract_has_a_row() -> None:
    assert set(State) == set(lifecycle.TABLE)

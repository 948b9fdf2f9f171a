import pytest

from kt_manifest.pattern_compiler import MOST_STATES, Compiler, PatternRefused


def test_an_automaton_begins_at_its_first_state_and_accepts_at_its_second() -> None:
    states, accept = Compiler("a").compile()

    assert 1 == accept
    assert states[0].free == [2]
    assert states[2].test is not None
    assert states[2].free == [accept]


def test_a_pattern_costs_no_more_states_than_the_limit() -> None:
    states, _ = Compiler("(ab){70}").compile()

    assert len(states) <= MOST_STATES
    with pytest.raises(PatternRefused, match="states"):
        Compiler("(abcd){100}").compile()

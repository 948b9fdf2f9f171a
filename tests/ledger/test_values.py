import pytest

from kt_ledger.values import UNITS, Completeness, Counts, Source, UsageEvent


def test_totals_include_what_the_contract_includes_and_each_token_once() -> None:
    counts = Counts(*range(1, 14))

    assert sum((1, 2, 3, 4, 7, 9)) == counts.input_total
    assert sum((5, 6, 8, 10)) == counts.output_total


def test_a_total_of_nothing_known_is_none_and_of_zeros_is_zero() -> None:
    assert (None, None, False) == (Counts().input_total, Counts().output_total, Counts().known)
    assert (0, None, True) == (
        Counts(input=0).input_total,
        Counts(input=0).output_total,
        Counts(input=0).known,
    )


def test_json_names_the_known_units_only() -> None:
    assert {"input": 0, "reasoning": 3} == Counts(input=0, reasoning=3).to_json()
    assert set(UNITS) == set(Counts(*range(13)).to_json())


@pytest.mark.parametrize(
    ("completeness", "reason"), [("exact", "no_usage"), ("unknown", None), ("partial", None)]
)
def test_an_event_short_of_exact_says_why_and_an_exact_one_does_not(
    completeness: str, reason: str | None
) -> None:
    with pytest.raises(AssertionError):
        UsageEvent(
            id="e",
            instance_id="i",
            run_id=None,
            source=Source.ENGINE_OBSERVED,
            key="k",
            counts=Counts(),
            completeness=Completeness(completeness),
            reason=reason,
            started_at_ns=0,
            ended_at_ns=0,
        )

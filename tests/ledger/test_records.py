import pytest

from kt_ledger.records import RunRow, SourceTotals


@pytest.mark.parametrize(
    ("totals", "known"),
    [
        (SourceTotals(), "all"),
        (SourceTotals(events=1, exact=1, input_tokens=0), "all"),
        (SourceTotals(events=1, partial=1, output_tokens=3), "partial"),
        (SourceTotals(events=2, exact=1, unmeasured={"no_usage": 1}, input_tokens=3), "partial"),
        (SourceTotals(events=1, unmeasured={"no_usage": 1}), "none"),
    ],
)
def test_usage_known_says_how_much_the_sums_cover(totals: SourceTotals, known: str) -> None:
    assert known == totals.usage_known


def test_a_runs_token_is_not_shown() -> None:
    assert "secret" not in repr(RunRow(id="r", instance_id="i", token="secret", started_at_ns=0))

from typing import Any

import pytest

from kt_cli import figures


def view(**more: Any) -> dict[str, Any]:
    return {"cumulative_input_tokens": 1200, "cumulative_output_tokens": 34, **more}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (view(), "in 1,200 / out 34"),
        (view(usage_known="all", unmeasured_calls=0), "in 1,200 / out 34"),
        (view(cumulative_cached_tokens=0), "in 1,200 / out 34 / cached 0"),
        (view(cumulative_dollars=54_600), "in 1,200 / out 34 · $0.05"),
        (view(usage_known="partial", unmeasured_calls=1), "≥ in 1,200 / out 34 (+1 unmeasured call)"),
        (view(usage_known="none", unmeasured_calls=2), "— (+2 unmeasured calls)"),
        (view(usage_known="none"), "—"),
    ],
)
def test_what_is_not_known_is_never_a_zero(given: dict[str, Any], expected: str) -> None:
    assert expected == figures.usage(given, "cumulative")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, "Fleet total: in 5 / out 6 · — (no rate is configured)"),
        (
            {"total_dollars": 1_234_567_890, "unpriced_count": 0},
            "Fleet total: in 5 / out 6 · ≈ $1,234.57 (estimated)",
        ),
        (
            {"total_dollars": 10_000, "unpriced_count": 2},
            "Fleet total: in 5 / out 6 · ≈ $0.01 (estimated; 2 instances unpriced)",
        ),
        (
            {"usage_known": "partial", "unmeasured_calls": 1},
            "Fleet total: ≥ in 5 / out 6 (+1 unmeasured call) · — (no rate is configured)",
        ),
    ],
)
def test_the_total_says_what_it_lacks(more: dict[str, Any], expected: str) -> None:
    assert expected == figures.totals({"total_input_tokens": 5, "total_output_tokens": 6, **more})


@pytest.mark.parametrize(
    ("micros", "expected"),
    [
        (0, "$0.00"),
        (1, "<$0.01"),
        (4_999, "<$0.01"),
        (5_000, "$0.01"),
        (999_994_999, "$999.99"),
        (2**64, "$18,446,744,073,709.55"),
    ],
)
def test_money_is_rounded_half_up_and_a_trifle_is_not_nothing(micros: int, expected: str) -> None:
    assert expected == figures.money(micros)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, "—"),
        ({"breach_action": "pause"}, "—"),
        (
            {
                "per_run_limit": 1000,
                "per_run_remaining": 900,
                "cumulative_cost_cap": 5_000_000,
                "cumulative_dollars_remaining": 4_000_000,
                "breach_action": "stop",
            },
            "run 900/1,000 tok, cum $4.00/$5.00 (stop)",
        ),
    ],
)
def test_a_budget_shows_the_parts_that_are_set(given: dict[str, Any] | None, expected: str) -> None:
    assert expected == figures.budget(given)

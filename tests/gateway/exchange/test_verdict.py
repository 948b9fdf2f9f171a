import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_gateway.exchange.verdict import Facts, ends_cleanly, judge
from kt_ledger.values import Completeness, Reason

GOOD = Facts(
    metered=True,
    status=200,
    measured=True,
    whole=True,
    adds_up=True,
    stream=True,
    done=True,
    finished=True,
    error=False,
    deferred=False,
    unbilled=False,
    undecodable=False,
    too_large=False,
    faulty=False,
    failure=None,
)
NONE = {"measured": False, "whole": False}
OPEN_END = {"done": False, "finished": False}


@pytest.mark.parametrize(
    ("change", "completeness", "reason"),
    [
        ({}, "exact", None),
        ({"done": False}, "exact", None),  # a dialect without terminal event
        ({"stream": False, **OPEN_END}, "exact", None),
        ({"status": 500}, "exact", None),  # an error that reports usage
        ({"failure": Reason.CLIENT_GONE}, "exact", None),  # after the terminal event
        (NONE, "unknown", Reason.NO_USAGE),
        ({"whole": False}, "partial", Reason.USAGE_INCOMPLETE),
        ({"adds_up": False}, "partial", Reason.USAGE_INCONSISTENT),
        ({"whole": False, "adds_up": False}, "partial", Reason.USAGE_INCOMPLETE),
        ({"deferred": True}, "exact", None),  # not done, and yet it reports usage
        ({**NONE, "deferred": True}, "unknown", Reason.DEFERRED),
        ({"unbilled": True}, "exact", None),
        ({**NONE, "unbilled": True}, "unknown", Reason.UNBILLED),
        ({**NONE, "unbilled": True, "status": 500}, "unknown", Reason.PROVIDER_ERROR),
        (OPEN_END, "partial", Reason.NO_TERMINAL_EVENT),
        ({**OPEN_END, **NONE}, "unknown", Reason.NO_TERMINAL_EVENT),
        ({"done": False, "failure": Reason.UPSTREAM_CUT}, "partial", Reason.UPSTREAM_CUT),
        ({**NONE, "done": False, "failure": Reason.UPSTREAM_CUT}, "unknown", Reason.UPSTREAM_CUT),
        ({"error": True}, "partial", Reason.ERROR_IN_BODY),
        ({**NONE, "error": True}, "unknown", Reason.ERROR_IN_BODY),
        ({**NONE, "status": 429, "error": True}, "unknown", Reason.PROVIDER_ERROR),
        ({**NONE, "undecodable": True}, "unknown", Reason.UNDECODABLE),
        ({**NONE, "too_large": True}, "unknown", Reason.TOO_LARGE),
        ({**NONE, "metered": False}, "unknown", Reason.UNMETERED_PATH),
        ({**NONE, "faulty": True}, "unknown", Reason.METER_FAULT),
        ({"faulty": True}, "partial", Reason.METER_FAULT),
    ],
)
def test_the_verdict_is(change: dict[str, Any], completeness: str, reason: Reason | None) -> None:
    verdict = judge(dataclasses.replace(GOOD, **change))

    assert (verdict.completeness, verdict.reason) == (Completeness(completeness), reason)


@pytest.mark.parametrize(
    ("change", "cleanly"),
    [
        ({}, True),
        ({"done": False}, True),
        (OPEN_END, False),
        ({**OPEN_END, "error": True}, True),
        ({**OPEN_END, "status": 503}, True),
        ({**OPEN_END, "faulty": True}, True),
        ({**OPEN_END, "undecodable": True}, True),
        ({**OPEN_END, "stream": False}, True),
        ({"failure": Reason.UPSTREAM_CUT}, False),
    ],
)
def test_an_answer_ends_cleanly_unless_it_was_cut(change: dict[str, Any], cleanly: bool) -> None:
    assert ends_cleanly(dataclasses.replace(GOOD, **change)) == cleanly


BOOLEANS = {
    name: st.booleans()
    for name in (f.name for f in dataclasses.fields(Facts))
    if name not in ("status", "failure")
}


@given(
    st.fixed_dictionaries(BOOLEANS),
    st.sampled_from([None, 200, 404]),
    st.none() | st.sampled_from(list(Reason)),
)
def test_exact_needs_a_measurement_and_everything_else_a_reason(
    facts: dict[str, bool], status: int | None, failure: Reason | None
) -> None:
    verdict = judge(Facts(**facts, status=status, failure=failure))

    assert (verdict.completeness is Completeness.EXACT) == (verdict.reason is None)
    assert verdict.completeness is Completeness.UNKNOWN or facts["measured"]

from dataclasses import replace
from typing import Any

import pytest

from kt_cli.demo.judge import judge
from kt_cli.demo.provider_log import ProviderCall

CALL = ProviderCall(
    id="1",
    case="demo/answer",
    method="POST",
    path="/v1/chat/completions",
    model="demo/answer@1",
    request_bytes=10,
    stream=False,
    include_usage=False,
    answered=True,
    status=200,
    complete=True,
    usage={"prompt_tokens": 5, "completion_tokens": 6},
)
CUT = replace(CALL, id="2", model="demo/cut@2", usage=None)
ROW: dict[str, Any] = {
    "sent": "yes",
    "model_asked": "demo/answer@1",
    "path": "/v1/chat/completions",
    "input_tokens": 5,
    "output_tokens": 6,
}
CUT_ROW = {**ROW, "model_asked": "demo/cut@2", "input_tokens": None, "output_tokens": None}


def test_a_ledger_that_says_the_same_agrees() -> None:
    verdict = judge([CALL, CUT], [CUT_ROW, ROW])

    assert verdict.agrees
    assert (verdict.provider_calls, verdict.ledger_rows) == (2, 2)


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([ROW], "missing"),
        ([], "missing"),
        ([ROW, ROW, CUT_ROW], "doubled"),
        ([ROW, CUT_ROW, {**ROW, "model_asked": "other"}], "doubled"),
        ([{**ROW, "input_tokens": 4}, CUT_ROW], "differing"),
        ([ROW, {**CUT_ROW, "input_tokens": 0, "output_tokens": 0}], "differing"),
        ([{**ROW, "input_tokens": None, "output_tokens": None}, CUT_ROW], "differing"),
        ([ROW, {**CUT_ROW, "sent": "no"}], "missing"),
    ],
)
def test_every_kind_of_difference_is_seen(rows: list[dict[str, Any]], fault: str) -> None:
    verdict = judge([CALL, CUT], rows)

    assert not verdict.agrees
    assert [fault] == [kind for kind in ("missing", "doubled", "differing") if getattr(verdict, kind)]


def test_a_call_that_never_left_is_no_call_of_the_provider() -> None:
    assert judge([CALL], [ROW, {**ROW, "sent": "no", "input_tokens": None}]).agrees


def test_calls_of_one_model_are_compared_as_a_whole() -> None:
    other = replace(CALL, usage={"prompt_tokens": 7, "completion_tokens": 8})

    assert judge([CALL, other], [{**ROW, "input_tokens": 7, "output_tokens": 8}, ROW]).agrees
    assert not judge([CALL, other], [ROW, ROW]).agrees

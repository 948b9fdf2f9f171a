"""kill -9 of the gateway at each named point: no provider call without a row, none with two.

Without KT_CHAOS in the middle of an answer only: what each point leaves in the journal is always looked at by
`tests/gateway/mitm/test_order.py`.
"""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kt_cli.demo.provider_process import ProviderProcess
from kt_gateway import failpoints

POINTS = sorted(failpoints.POINTS) if "KT_CHAOS" in os.environ else ["mid_stream"]
CALLER = str(Path(__file__).parent / "agents" / "plain_caller.py")


@pytest.mark.chaos
@pytest.mark.parametrize("point", POINTS)
def test_the_gateway_dies_and_every_call_keeps_its_one_row(
    fleet: Any, provider: ProviderProcess, point: str
) -> None:
    hits = 30 if point == "mid_stream" else 5
    fleet.env["KT_FAILPOINT"] = f"{point}:{hits}"

    fleet.observe("opaque", provider, CALLER, "--repeat", "6", "plain-json", "stream-not-asked!")
    ended = fleet.wait_state("opaque", "stopped", "failed")

    assert 0 == ended["exit"]["code"]
    deaths = len(list((fleet.state / "gateway" / "journal").iterdir())) - 1
    assert deaths >= 1, "the failpoint was never reached"
    rows = fleet.exchanges("opaque")
    kept = Counter(row["model_asked"] for row in rows if row["sent"] != "no")
    called = Counter(call.model for call in provider.calls())
    assert not called - kept, "a provider call without a row"
    for model in kept - called:
        assert {"may_not_have_been_sent"} == {row["reason"] for row in rows if row["model_asked"] == model}
    assert {1} == set(kept.values())
    assert all(row["state"] == "ended" for row in rows)
    usage = fleet.json("agent", "usage", "opaque")["usage"]
    measured = [row for row in rows if row["completeness"] == "exact"]
    assert sum(row["input_tokens"] for row in measured) == usage["cumulative_input_tokens"]

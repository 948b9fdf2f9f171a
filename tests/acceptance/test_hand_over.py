"""kill -9 of the gateway again and again while many clients call: nobody is refused, and nobody pays for who left."""

import json
import os
import re
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kt_cli.demo.provider_process import ProviderProcess

CALLER = str(Path(__file__).parent / "agents" / "many_callers.py")
CLIENTS = 12
KILLS = 5 if "KT_CHAOS" in os.environ else 2
LATE_NS = 500_000_000
"""How long after its sender left a request may reach the provider: it may have been on its way by then."""


def received_at(provider: ProviderProcess) -> dict[str, int]:
    lines = [json.loads(line) for line in provider.log.read_bytes().split(b"\n")[:-1]]
    return {facts["model"]: facts["at_ns"] for facts in lines if facts["event"] == "received"}


def count(provider: ProviderProcess) -> int:
    """Return how many calls have reached the provider; while they come, nothing is parsed."""
    return len(re.findall(rb'"event": "received"', provider.log.read_bytes()))


@pytest.mark.chaos
def test_kills_under_traffic_refuse_nobody_and_forward_for_nobody_who_left(
    fleet: Any, provider: ProviderProcess, eventually: Any, tmp_path: Path
) -> None:
    stop, out = tmp_path / "stop", tmp_path / "calls.ndjson"
    fleet.observe("opaque", provider, CALLER, str(CLIENTS), str(stop), str(out))
    for _ in range(KILLS):
        before, known = fleet.gateway_pid(), count(provider)
        eventually(lambda known=known: count(provider) > known + CLIENTS, what="traffic")
        os.kill(before, signal.SIGKILL)
        eventually(lambda before=before: fleet.gateway_pid() != before, what="the next gateway")
    known = count(provider)
    eventually(lambda: count(provider) > known + CLIENTS, what="traffic behind the last kill")

    stop.touch()
    ended = fleet.wait_state("opaque", "stopped", "failed")

    assert 0 == ended["exit"]["code"]
    calls = [json.loads(line) for line in out.read_text().splitlines()]
    outcomes = Counter(call["outcome"] for call in calls)
    slowest_s = max(call["took_s"] for call in calls)
    sys.stderr.write(f"{dict(outcomes)}, slowest {slowest_s:.2f} s\n")
    assert set(outcomes) <= {"ok", "cut", "left"}, outcomes
    assert outcomes["cut"] <= KILLS * CLIENTS, "more were cut than can have been under way"
    reached = received_at(provider)
    left = {call["model"]: call["ended_at_ns"] for call in calls if call["outcome"] == "left"}
    late = {model: reached[model] - at_ns for model, at_ns in left.items() if model in reached}
    assert not {model: ns for model, ns in late.items() if ns > LATE_NS}

    rows = fleet.exchanges("opaque")
    kept = Counter(row["model_asked"] for row in rows if row["sent"] != "no")
    assert {1} == set(kept.values())
    assert not set(reached) - set(kept), "a provider call without a row"
    exact = {row["model_asked"] for row in rows if row["reason"] is None}
    assert {call["model"] for call in calls if call["outcome"] == "ok"} <= exact
    assert all(row["state"] == "ended" for row in rows)

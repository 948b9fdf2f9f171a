"""The real `openai` SDK in an agent, through its listener, judged by the provider's own log.

Its shorter relative, `tests/replay/test_openai_sdk.py`, has the SDK in the test's own process.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.provider import all_answered

from kt_cli.demo.provider_process import ProviderProcess

CALLER = str(Path(__file__).parent / "agents" / "openai_caller.py")
CASES = (
    "plain-json",
    "stream-not-asked!",
    "tool-calls-json",
    "stream-tool-calls!!",
    "gzip-json",
    "stream-gzip!!",
    "cached-json",
    "stream-cut-before-usage!",
    "status-429",
    "stream-close-delimited!",
    "close-delimited-json",
)


def outcomes(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


STYLES = ("--style", "both")
"""Blocking and asynchronous in one process: to import the SDK costs more than all calls."""


@pytest.mark.long
def test_the_sdk_gets_what_it_gets_directly_and_every_call_is_in_the_ledger(
    fleet: Any, provider: ProviderProcess, tmp_path: Path
) -> None:
    direct, metered = tmp_path / "direct.ndjson", tmp_path / "metered.ndjson"
    environment = {**os.environ, "OPENAI_BASE_URL": f"{provider.url}/v1"}
    subprocess.run([sys.executable, CALLER, *STYLES, "--out", direct, *CASES], env=environment, check=True)
    before = len(all_answered(provider))

    fleet.observe("opaque", provider, CALLER, *STYLES, "--out", str(metered), *CASES)
    ended = fleet.wait_state("opaque", "stopped", "failed")

    assert 0 == ended["exit"]["code"]
    assert outcomes(direct) == outcomes(metered)
    calls = {call.model: call for call in all_answered(provider)[before:]}
    rows = {row["model_asked"]: row for row in fleet.exchanges("opaque")}
    assert calls.keys() == rows.keys()
    assert 2 * len(CASES) == len(rows) == len(fleet.exchanges("opaque"))
    for model, call in calls.items():
        assert (call.status, "yes", "ended") == (
            rows[model]["status"],
            rows[model]["sent"],
            rows[model]["state"],
        )
        assert (call.input_tokens, call.output_tokens) == (
            rows[model]["input_tokens"],
            rows[model]["output_tokens"],
        )
        assert (call.usage is not None) == (rows[model]["completeness"] == "exact"), rows[model]
    measured = [call for call in calls.values() if call.usage]
    usage = fleet.json("agent", "usage", "opaque")["usage"]
    assert sum(call.input_tokens or 0 for call in measured) == usage["cumulative_input_tokens"]
    assert sum(call.output_tokens or 0 for call in measured) == usage["cumulative_output_tokens"]
    assert (len(calls) - len(measured), "partial") == (usage["unmeasured_calls"], usage["usage_known"])

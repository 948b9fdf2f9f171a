"""kill -9 of the engine while agents report and call: nothing lost, nothing doubled, and it comes back by itself."""

import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kt_cli.demo.provider_process import ProviderProcess

AGENTS = Path(__file__).parent / "agents"
LINES = 20_000
CALLS = 200
KILLS = 20 if "KT_CHAOS" in os.environ else 3


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def adopted(fleet: Any) -> bool:
    status = fleet.engine()
    return bool(status and status["store"] == "ok" and status["agents"]["running"])


@pytest.mark.long
@pytest.mark.chaos
def test_kills_lose_nothing_and_double_nothing(
    fleet: Any, provider: ProviderProcess, eventually: Any
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    counting = ["agent", "register", "counting", "--kind", "command", "--", sys.executable]
    fleet.run(*counting, str(AGENTS / "counting.py"), str(LINES), "0.5")
    fleet.run("agent", "start", "counting")
    fleet.observe(
        "opaque",
        provider,
        str(AGENTS / "openai_caller.py"),
        "--repeat",
        str(CALLS // 2),
        "plain-json",
        "stream-not-asked!",
    )
    runs = {name: fleet.instance(name)["run_id"] for name in ("counting", "opaque")}

    too_early = False
    for _ in range(KILLS):
        before = fleet.engine_pid()
        # Now and then before it adopted anybody, but never twice in a row: the keepers' back-off is another test.
        too_early = not too_early and chance.random() < 0.3
        if not too_early:
            eventually(lambda: adopted(fleet), what="an engine that has adopted its agents")
        os.kill(before, signal.SIGKILL)
        eventually(
            lambda before=before: (pid := fleet.engine_pid()) != before and alive(pid), what="an engine again"
        )
    counted = eventually(
        lambda: usage if (usage := fleet.usage("counting"))["cumulative_output_tokens"] >= LINES else None,
        what="all lines",
    )
    fleet.wait_state("opaque", "stopped", "failed")

    assert (LINES, sum(n % 97 for n in range(LINES))) == (
        counted["cumulative_output_tokens"],
        counted["cumulative_input_tokens"],
    )
    assert 0 == counted["unmeasured_calls"]
    called = Counter(call.model for call in provider.calls())
    rows = fleet.exchanges("opaque")
    assert CALLS == len(called)
    assert called == Counter(row["model_asked"] for row in rows)
    assert {"exact"} == {row["completeness"] for row in rows}
    assert runs == {name: fleet.instance(name)["run_id"] for name in runs}
    assert "running" == fleet.instance("counting")["state"]


@pytest.mark.chaos
@pytest.mark.long
def test_engine_and_gateway_killed_together_come_back_without_a_command(
    fleet: Any, provider: ProviderProcess, eventually: Any
) -> None:
    fleet.observe(
        "opaque", provider, str(AGENTS / "openai_caller.py"), "--repeat", "100", "stream-not-asked!"
    )
    shown = fleet.instance("opaque")
    engine, gateway = fleet.engine_pid(), fleet.gateway_pid()

    os.kill(engine, signal.SIGKILL)
    os.kill(gateway, signal.SIGKILL)
    eventually(
        lambda: (
            fleet.engine_pid() != engine and fleet.gateway_pid() != gateway and alive(fleet.gateway_pid())
        ),
        what="both again",
    )
    ended = fleet.wait_state("opaque", "stopped", "failed")

    assert (shown["run_id"], 0) == (ended["run_id"], ended["exit"]["code"])
    rows = fleet.exchanges("opaque")
    kept = Counter(row["model_asked"] for row in rows if row["sent"] != "no")
    assert not Counter(call.model for call in provider.calls()) - kept
    assert {1} == set(kept.values())

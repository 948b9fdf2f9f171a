import signal
from typing import Any

import pytest

CRASHES = "import sys, time\ntime.sleep(0.5)\nsys.exit(3)"
SLEEPS = "import time\ntime.sleep(600)"


def causes(house: Any, name: str) -> list[str]:
    """Return the engine's own lines about an agent."""
    return [line["text"] for line in house.said(name) if line["stream"] == "engine"]


def restarts(house: Any, name: str) -> list[str]:
    return [text for text in causes(house, name) if "failed -> starting (restarted" in text]


def test_a_crash_is_followed_by_another_run(house: Any) -> None:
    house.register("bot", CRASHES)
    first = house.start("bot")["run_id"]

    house.until(lambda: restarts(house, "bot"), "it was brought back")
    second = house.wait_for_state("bot", "running")

    assert first != second["run_id"]
    assert 1 <= second["restart_count"]
    assert "on-failure" == second["restart_policy"]


def test_an_agent_that_is_never_brought_back_stays_failed(house: Any) -> None:
    house.register("bot", CRASHES)
    house.set("bot", "restart.policy", "never")
    house.start("bot")

    entry = house.wait_for_state("bot", "failed")

    assert (None, 0) == (entry.get("restart"), entry["restart_count"])


def test_a_crash_loop_is_parked_with_its_reason(house: Any) -> None:
    house.register("bot", CRASHES)
    house.set("bot", "restart.limit", "2")
    house.start("bot")

    entry = house.until(
        lambda: (found := house.entry("bot")).get("restart", {}).get("parked") and found, "it is parked"
    )

    assert "failed" == entry["state"]
    assert "crash loop: 2 failures within 600 s" == entry["restart"]["parked"]
    assert 1 == len(restarts(house, "bot"))


def test_a_stop_cancels_the_restart_that_is_due(house: Any) -> None:
    house.register("bot", CRASHES)
    house.start("bot")
    house.wait_for_state("bot", "failed")

    stopped = house.stop("bot")

    entry = house.entry("bot")
    assert ("stopped", "stopped", "stopped") == (stopped["state"], entry["state"], entry["desired"])
    assert entry.get("restart") is None


def test_a_stop_of_what_failed_for_good_is_refused(house: Any) -> None:
    house.register("bot", CRASHES)
    house.set("bot", "restart.policy", "never")
    house.start("bot")
    house.wait_for_state("bot", "failed")

    refused = house.refusal("POST", "/v1/agents/bot/stop", {"timeout_s": 1})

    assert 4 == refused.exit_code


def test_exit_zero_is_an_end_unless_the_policy_is_always(house: Any) -> None:
    for name, policy in (("done", "on-failure"), ("again", "always")):
        house.register(name, "import time\ntime.sleep(0.5)")
        house.set(name, "restart.policy", policy)
        house.start(name)

    done = house.wait_for_state("done", "stopped")
    house.until(lambda: restarts(house, "again"), "it was brought back")

    assert 0 == done["restart_count"]
    assert "stopped" == house.entry("done")["state"]


def test_a_restart_that_is_due_survives_the_engine(house: Any) -> None:
    house.register("bot", CRASHES)
    house.start("bot")
    house.wait_for_state("bot", "failed")

    house.kill_engine()
    house.boot()

    house.until(lambda: restarts(house, "bot"), "it was brought back")
    assert 1 <= house.entry("bot")["restart_count"]


@pytest.mark.chaos
@pytest.mark.long
def test_the_failures_of_earlier_engines_count(house: Any) -> None:
    house.register("bot", CRASHES)
    house.set("bot", "restart.limit", "3")
    house.start("bot")
    for expected in (1, 2):
        house.until(lambda expected=expected: len(restarts(house, "bot")) >= expected, "it was brought back")
        house.kill_engine()
        house.boot()

    entry = house.until(
        lambda: (found := house.entry("bot")).get("restart", {}).get("parked") and found, "it is parked"
    )

    assert 2 <= entry["restart_count"] <= 4  # a start that the kill cut short is made up for


def test_what_cannot_start_is_parked_and_not_tried_again(house: Any) -> None:
    house.register("bot", CRASHES)
    house.start("bot")
    house.set("bot", "agent.KEY", "secret:GONE")

    entry = house.until(
        lambda: (found := house.entry("bot")).get("restart", {}).get("parked") and found, "it is parked"
    )

    assert "GONE" in entry["restart"]["parked"]
    assert "failed" == entry["state"]


def test_a_program_that_is_gone_parks_the_agent_at_once(house: Any) -> None:
    program = house.root.parent / "agent"
    program.write_text("#!/bin/sh\nsleep 0.6\nexit 3\n")
    program.chmod(0o755)
    house.register_command("bot", str(program))
    house.start("bot")
    program.unlink()

    entry = house.until(
        lambda: (found := house.entry("bot")).get("restart", {}).get("parked") and found, "it is parked"
    )

    assert 1 == entry["restart_count"]
    assert "executable not found" in entry["restart"]["parked"]


def test_a_start_by_hand_forgets_the_row_of_failures(house: Any) -> None:
    house.register("bot", CRASHES)
    house.set("bot", "restart.limit", "2")
    house.start("bot")
    house.until(lambda: house.entry("bot").get("restart", {}).get("parked"), "it is parked")

    house.start("bot")

    assert 0 == house.entry("bot")["restart_count"]


def test_restart_gives_a_running_agent_another_run(house: Any) -> None:
    house.register("bot", SLEEPS)
    first = house.start("bot")

    second = house.ask("POST", "/v1/agents/bot/restart", {"env": {}, "timeout_s": 5})

    assert first["run_id"] != second["run_id"]
    assert "running" == house.entry("bot")["state"]


def test_restart_looks_at_what_it_needs_before_it_stops_anything(house: Any) -> None:
    house.register("bot", SLEEPS)
    first = house.start("bot")["run_id"]
    house.set("bot", "agent.KEY", "secret:GONE")

    refused = house.refusal("POST", "/v1/agents/bot/restart", {"env": {}, "timeout_s": 5})

    entry = house.entry("bot")
    assert (1, "running", first) == (refused.exit_code, entry["state"], entry["run_id"])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_signal_is_a_failure(house: Any, number: signal.Signals) -> None:
    house.register("bot", f"import os, time\ntime.sleep(0.5)\nos.kill(os.getpid(), {int(number)})")
    house.start("bot")

    entry = house.wait_for_state("bot", "failed")

    assert {"kind": "crashed", "detail": f"ended by signal {int(number)}"} == entry["failed_cause"]
    assert entry["restart"]["due_in_s"] > 0

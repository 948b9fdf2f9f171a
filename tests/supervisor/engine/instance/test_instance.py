import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kt_client.errors import KtError

SLEEPS = "import time\nprint('up')\ntime.sleep(600)"


def test_a_started_agent_runs_until_it_is_stopped(house: Any) -> None:
    house.register("bot", SLEEPS)

    started = house.start("bot")
    seen = house.entry("bot")
    stopped = house.stop("bot")

    assert "running" == started["state"]
    assert ("running", started["run_id"], started["pid"]) == (seen["state"], seen["run_id"], seen["pid"])
    assert {"schema_version": 1, "name": "bot", "state": "stopped", "forced": False} == stopped
    assert "stopped" == house.entry("bot")["state"]
    assert 15 == house.entry("bot")["exit"]["signal"]


def test_a_restarted_agent_has_a_new_run(house: Any) -> None:
    house.register("bot", SLEEPS)
    first = house.start("bot")["run_id"]
    house.stop("bot")

    second = house.start("bot")["run_id"]

    assert first != second


def test_an_agent_that_ignores_term_is_stopped_by_force(house: Any) -> None:
    house.register("stubborn", f"import signal\nsignal.signal(15, signal.SIG_IGN)\n{SLEEPS}")
    house.start("stubborn")

    stopped = house.stop("stubborn", timeout_s=0.3)

    assert {"schema_version": 1, "name": "stubborn", "state": "stopped", "forced": True} == stopped


def test_a_child_that_left_the_group_does_not_outlive_the_stop(house: Any) -> None:
    house.register(
        "parent", "import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '600'])\ntime.sleep(600)"
    )
    before = {process.pid for process in house.processes()}
    house.start("parent")

    house.stop("parent")

    house.until(lambda: {p.pid for p in house.processes()} <= before, "the keeper has left too")


def test_fifty_starts_at_once_are_one_run(house: Any) -> None:
    house.register("bot", SLEEPS)
    before = set(house.files.runs.iterdir())

    def start(_: int) -> Any:
        try:
            return house.start("bot")["run_id"]
        except Exception as refused:
            return refused

    with ThreadPoolExecutor(50) as crowd:
        answers = list(crowd.map(start, range(50)))

    runs = [answer for answer in answers if isinstance(answer, str)]
    assert 1 == len(runs)
    assert {4} == {answer.exit_code for answer in answers if not isinstance(answer, str)}
    assert 1 == len(set(house.files.runs.iterdir()) - before)


def test_two_agents_start_side_by_side(house: Any) -> None:
    for name in ("a", "b"):
        house.register(name, SLEEPS)

    with ThreadPoolExecutor(2) as both:
        states = [answer["state"] for answer in both.map(house.start, ("a", "b"))]

    assert ["running", "running"] == states


def test_the_childs_environment_is_what_it_inherits_of_its_callers(house: Any) -> None:
    house.register("env", "import os, time\nprint(sorted(os.environ.items()))\ntime.sleep(600)")
    house.set("env", "env.inherit", "@default COLOUR")

    run_id = house.start("env", COLOUR="blue", SHAPE="round")["run_id"]

    said = house.until(
        lambda: [line["text"] for line in house.said("env") if "COLOUR" in line["text"]], "it spoke"
    )[0]
    variables = dict(eval(said))
    assert ("blue", "env", run_id) == (variables["COLOUR"], variables["KT_INSTANCE"], variables["KT_RUN"])
    assert not {"PYTHONPATH", "SHAPE"} & set(variables)


def test_an_exit_that_nobody_asked_for_is_a_crash(house: Any) -> None:
    house.register("short", "import time, sys\ntime.sleep(0.6)\nsys.exit(7)")
    house.start("short")

    entry = house.wait_for_state("short", "failed")

    assert {"kind": "crashed", "detail": "exited with code 7"} == entry["failed_cause"]
    assert {"code": 7, "signal": None} == entry["exit"]


def test_an_agent_that_is_done_is_stopped_and_no_crash(house: Any) -> None:
    house.register("short", "import time\ntime.sleep(0.6)")
    house.start("short")

    entry = house.wait_for_state("short", "stopped")

    assert {"code": 0, "signal": None} == entry["exit"]
    assert "failed_cause" not in entry


def test_a_program_that_ends_at_once_is_a_failed_launch_with_its_last_lines(house: Any) -> None:
    house.register("broken", "import sys\nprint('no such model', file=sys.stderr)\nsys.exit(3)")

    refused = house.refusal("POST", "/v1/agents/broken/start", {"env": {"PATH": "/usr/bin:/bin"}})

    assert 1 == refused.exit_code
    assert "no such model" in str(refused)
    assert "exit code 3" in str(refused)
    assert "failed" == house.entry("broken")["state"]


def test_a_program_that_ends_well_at_once_has_not_started_either(house: Any) -> None:
    house.register("quick", "print('done')")

    refused = house.refusal("POST", "/v1/agents/quick/start", {"env": {}})

    assert "exit code 0" in str(refused)


def test_a_missing_program_is_named(house: Any) -> None:
    from kt_manifest.contract import kinds

    adapter = kinds.command(["no-such-program-anywhere"], interactive=False, observe=False)
    house.ask("POST", "/v1/agents", {"name": "ghost", "adapter": adapter.to_json()})

    refused = house.refusal("POST", "/v1/agents/ghost/start", {"env": {"PATH": "/usr/bin"}})

    assert 1 == refused.exit_code
    assert "no-such-program-anywhere" in str(refused)
    assert "failed" == house.entry("ghost")["state"]


def test_a_mock_cannot_be_launched_and_stays_registered(house: Any) -> None:
    from kt_manifest.contract import kinds

    house.ask("POST", "/v1/agents", {"name": "m", "adapter": kinds.builtin("mock").to_json()})

    refused = house.refusal("POST", "/v1/agents/m/start", {"env": {}})

    assert 1 == refused.exit_code
    assert "cannot launch" in str(refused)
    assert "registered" == house.entry("m")["state"]


def test_verbs_in_the_wrong_state_are_refused_alike(house: Any) -> None:
    house.register("bot", SLEEPS)

    unstopped = house.refusal("POST", "/v1/agents/bot/stop", {})
    house.start("bot")
    started = house.refusal("POST", "/v1/agents/bot/start", {"env": {}})
    removed = house.refusal("DELETE", "/v1/agents/bot?home=retain&force=0")

    assert [4, 4, 4] == [unstopped.exit_code, started.exit_code, removed.exit_code]
    assert "cannot stop bot: got state registered" in str(unstopped)
    assert "cannot start bot: got state running" in str(started)


def test_unknown_bad_and_taken_names_have_their_exit_codes(house: Any) -> None:
    house.register("bot", SLEEPS)
    adapter = house.refusal("POST", "/v1/agents", {"name": "bot", "adapter": "{}"})

    unknown = house.refusal("GET", "/v1/agents/nobody")
    bad = house.refusal("POST", "/v1/agents", {"name": "Bad Name", "adapter": "{}"})

    assert (3, 2, 1) == (unknown.exit_code, bad.exit_code, adapter.exit_code)
    from kt_client.errors import KtError

    try:
        house.register("bot", SLEEPS)
    except KtError as taken:
        assert 2 == taken.exit_code
    else:
        raise AssertionError("a second bot was registered")


def test_a_removed_name_is_free_and_begins_at_nothing(house: Any) -> None:
    usage = 'print(\'KTESIO_USAGE {"sequence": 0, "input_tokens": 5, "output_tokens": 6}\')\n'
    house.register("bot", usage + SLEEPS)
    first = house.entry("bot")["id"]
    house.start("bot")
    house.until(lambda: house.entry("bot")["usage"]["cumulative_input_tokens"] == 5, "the line is counted")

    house.ask("DELETE", "/v1/agents/bot?home=delete&force=1")
    gone = house.files.home("bot").exists()
    house.register("bot", SLEEPS)

    assert not gone
    assert first != house.entry("bot")["id"]
    assert 0 == house.entry("bot")["usage"]["cumulative_input_tokens"]


def test_logs_hold_both_streams_and_the_transitions_in_order(house: Any) -> None:
    house.register(
        "bot",
        "import sys, time\nprint('one')\ntime.sleep(0.1)\nprint('two', file=sys.stderr)\ntime.sleep(600)",
    )
    house.start("bot")
    house.stop("bot")

    lines = house.said("bot")

    texts = [(line["stream"], line["text"]) for line in lines if line["stream"] != "engine"]
    assert [("agent-out", "one"), ("agent-err", "two")] == texts
    engine = [line["text"].split(" (")[0] for line in lines if line["stream"] == "engine"]
    assert engine == [
        "registered -> starting",
        "starting -> running",
        "running -> stopping",
        "stopping -> stopped",
    ]


def test_a_follower_sees_the_end_and_is_let_go(house: Any) -> None:
    house.register("bot", "import time\nfor n in range(8):\n    print(n)\n    time.sleep(0.1)")
    house.start("bot")

    lines = list(house.link.lines("/v1/agents/bot/logs?follow=1", timeout_s=20))

    assert [str(n) for n in range(8)] == [line["text"] for line in lines if line["stream"] == "agent-out"]


def test_a_removal_by_force_and_a_start_at_once_never_leave_half_of_each(house: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    house.register("bot", SLEEPS)
    house.start("bot")

    def attempt(number: int) -> str:
        try:
            if number % 2:
                house.start("bot")
            else:
                house.ask("DELETE", "/v1/agents/bot?home=delete&force=1")
        except KtError as refused:
            return refused.code
        return "done"

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(attempt, range(8)))

    assert 1 <= outcomes.count("done")
    assert {"done", "no_such_agent", "invalid_transition"} >= set(outcomes)
    assert [] == house.ask("GET", "/v1/agents")["instances"]
    assert not house.files.home("bot").exists()


def test_a_start_says_that_nobody_leads_the_agent_to_its_listener(house: Any) -> None:
    import json

    from kt_manifest.contract import kinds

    adapter = kinds.command([sys.executable, "-c", SLEEPS], interactive=False, observe=True)
    unmapped = {**json.loads(adapter.to_json()), "mapping": []}
    house.ask("POST", "/v1/agents", {"name": "blind", "adapter": json.dumps(unmapped)})
    house.set("blind", "metering.upstream_base_url", "http://127.0.0.1:9/v1")

    started = house.start("blind")

    assert any("will not be seen" in notice for notice in started["notices"])
    assert "none" == house.entry("blind")["usage"]["usage_known"]


def test_a_name_is_free_only_once_what_was_removed_is_gone(house: Any) -> None:
    house.register("bot", SLEEPS)
    for number in range(4000):
        (house.files.home("bot") / f"f{number}").touch()

    with ThreadPoolExecutor(1) as other:
        removing = other.submit(house.ask, "DELETE", "/v1/agents/bot?home=delete")
        taken = house.until(lambda: _registered(house), "the name is free")
        removing.result()
    house.set("bot", "model", "mine")

    assert "bot" == taken["name"]
    assert not list(house.files.home("bot").glob("f*"))
    assert "mine" in (house.files.home("bot") / "config.toml").read_text()


def _registered(house: Any) -> Any:
    try:
        return house.register("bot", SLEEPS)
    except KtError as refused:
        assert refused.exit_code == 2
        return None

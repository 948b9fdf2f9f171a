import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kt_manifest.contract import capability
from kt_manifest.contract.capability import Declaration, Level, Support
from kt_manifest.contract.snapshot import Template

COUNTS = "import time\nn = 0\nwhile True: n += 1; print(n); time.sleep(0.01)"
SPINS = "import subprocess, sys\nsubprocess.Popen(['setsid', sys.executable, '-c', 'while 1: pass']).wait()"


def register(house: Any, name: str, code: str, level: Level, **templates: Template) -> None:
    declaration = Declaration(pause=Support(linux=level, macos=level))
    house.register(name, code, declaration=declaration, **templates)


def pause(house: Any, name: str) -> Any:
    return house.ask("POST", f"/v1/agents/{name}/pause", {})


def resume(house: Any, name: str) -> Any:
    return house.ask("POST", f"/v1/agents/{name}/resume", {})


def lines(house: Any, name: str) -> int:
    return len(house.said(name))


def ticks(pid: int) -> int:
    """Return the processor time that a process and its children have used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def tree(house: Any) -> list[int]:
    return [p.pid for p in house.processes() if b"KT_RUN=" in Path(f"/proc/{p.pid}/environ").read_bytes()]


def test_a_guaranteed_pause_stops_everything_and_a_resume_lets_it_go_on(house: Any) -> None:
    register(house, "bot", COUNTS, Level.GUARANTEED)
    started = house.start("bot")

    paused = pause(house, "bot")
    known = lines(house, "bot")
    still = lines(house, "bot")
    resumed = resume(house, "bot")

    assert ("paused", "guaranteed", known) == (paused["state"], paused["level"], still)
    assert "running" == resumed["state"]
    house.until(lambda: lines(house, "bot") > still + 10, "it goes on")
    assert started["run_id"] == house.entry("bot")["run_id"]


def test_a_child_that_left_the_group_is_paused_too(house: Any) -> None:
    register(house, "bot", SPINS, Level.GUARANTEED)
    house.start("bot")
    house.until(lambda: any(ticks(pid) > 20 for pid in tree(house)), "the child burns")

    pause(house, "bot")
    before = {pid: ticks(pid) for pid in tree(house)}
    ends_s = time.monotonic() + 0.5
    house.until(lambda: time.monotonic() > ends_s, "half a second passes")
    after = {pid: ticks(pid) for pid in tree(house)}

    assert 2 <= len(before)
    assert before == after


def test_a_pause_that_somebody_undoes_is_done_again(house: Any) -> None:
    register(house, "bot", COUNTS, Level.GUARANTEED)
    pid = house.start("bot")["pid"]
    pause(house, "bot")

    os.kill(pid, signal.SIGCONT)

    house.until(
        lambda: (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "tT"
            or "frozen 1" in _frozen(pid)
        ),
        "it is stopped again",
    )
    assert "paused" == house.entry("bot")["state"]


def _frozen(pid: int) -> str:
    place = Path(f"/proc/{pid}/cgroup").read_text().rpartition("::")[2].strip()
    events = Path("/sys/fs/cgroup/unified") / place.lstrip("/") / "cgroup.events"
    return events.read_text() if events.exists() else ""


def test_a_paused_agent_is_stopped_at_once(house: Any) -> None:
    register(house, "bot", COUNTS, Level.GUARANTEED)
    house.start("bot")
    pause(house, "bot")
    begun_s = time.monotonic()

    stopped = house.stop("bot", timeout_s=60)

    assert {"name": "bot", "state": "stopped", "forced": False}.items() <= stopped.items()
    assert time.monotonic() - begun_s < 25


def test_best_effort_says_so_and_sends_no_signal(house: Any) -> None:
    register(house, "bot", COUNTS, Level.BEST_EFFORT, pause=Template(exec="true"))
    house.start("bot")

    paused = pause(house, "bot")
    known = lines(house, "bot")

    assert ("paused", "best-effort") == (paused["state"], paused["level"])
    assert any("best effort" in notice for notice in paused["notices"])
    house.until(lambda: lines(house, "bot") > known + 10, "it goes on")
    assert "running" == resume(house, "bot")["state"]
    causes = [line["text"] for line in house.said("bot") if line["stream"] == "engine"]
    assert any("(pause-best-effort" in cause for cause in causes)
    assert any("(resume-best-effort" in cause for cause in causes)


@pytest.mark.parametrize("level", [Level.UNSUPPORTED, Level.BEST_EFFORT])
def test_what_would_hold_nothing_back_is_refused_and_changes_nothing(house: Any, level: Level) -> None:
    register(house, "bot", COUNTS, level)
    house.start("bot")

    refused = house.refusal("POST", "/v1/agents/bot/pause", {})

    assert (5, "running") == (refused.exit_code, house.entry("bot")["state"])


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_what_does_not_run_is_neither_paused_nor_resumed(house: Any, verb: str) -> None:
    register(house, "bot", COUNTS, Level.GUARANTEED)

    refused = house.refusal("POST", f"/v1/agents/bot/{verb}", {})

    assert 4 == refused.exit_code


def test_a_pause_outlives_the_engine(house: Any) -> None:
    register(house, "bot", COUNTS, Level.GUARANTEED)
    run_id = house.start("bot")["run_id"]
    pause(house, "bot")

    house.kill_engine()
    house.boot()

    entry = house.entry("bot")
    assert ("paused", "paused", run_id) == (entry["state"], entry["desired"], entry["run_id"])
    known = lines(house, "bot")
    assert known == lines(house, "bot")
    resume(house, "bot")
    house.until(lambda: lines(house, "bot") > known + 10, "it goes on")


def test_an_agent_that_dies_while_paused_has_failed(house: Any) -> None:
    register(house, "bot", COUNTS, Level.GUARANTEED)
    house.set("bot", "restart.policy", "never")
    pid = house.start("bot")["pid"]
    pause(house, "bot")

    os.kill(pid, signal.SIGKILL)

    assert "failed" == house.wait_for_state("bot", "failed")["state"]


def test_the_adapters_own_commands_run_with_the_agents_environment(house: Any, tmp_path: Path) -> None:
    def says(word: str) -> Template:
        code = (
            "import os, sys; "
            f"open(sys.argv[1], 'a').write('{word} ' + os.environ['KT_INSTANCE'] + os.environ['WORD'])"
        )
        return Template(
            exec=sys.executable, args=("-c", code, str(tmp_path / word)), env={"WORD": f"!{word}"}
        )

    register(
        house,
        "bot",
        COUNTS,
        Level.GUARANTEED,
        pause=says("pause"),
        resume=says("resume"),
        stop=says("stop"),
    )
    house.start("bot")

    pause(house, "bot")
    resume(house, "bot")
    stopped = house.stop("bot", timeout_s=2)

    said = {word: (tmp_path / word).read_text() for word in ("pause", "resume", "stop")}
    assert {word: f"{word} bot!{word}" for word in said} == said
    assert "stopped" == stopped["state"]


def test_a_pause_command_that_fails_or_is_missing_keeps_nothing_from_being_paused(house: Any) -> None:
    fails = Template(exec=sys.executable, args=("-c", "import sys; print('no'); sys.exit(3)"))
    register(house, "bot", COUNTS, Level.GUARANTEED, pause=fails, resume=Template(exec="no-such-program"))
    house.start("bot")

    paused = pause(house, "bot")
    known = lines(house, "bot")
    resumed = resume(house, "bot")

    assert known <= lines(house, "bot")
    assert any("ended with code 3" in notice for notice in paused["notices"])
    assert any("no-such-program" in notice for notice in resumed["notices"])
    assert "running" == resumed["state"]


def test_a_pause_that_its_keeper_does_not_confirm_says_so_and_is_made_good(house: Any) -> None:
    register(house, "bot", COUNTS, Level.GUARANTEED)
    started = house.start("bot")
    keeper = house.run_record(started["run_id"])["keeper_pid"]
    os.kill(keeper, signal.SIGSTOP)
    try:
        refused = house.refusal("POST", "/v1/agents/bot/pause", {})
        shown = house.entry("bot")
    finally:
        os.kill(keeper, signal.SIGCONT)

    assert (4, "pause_unconfirmed") == (refused.exit_code, refused.code)
    assert ("paused", "unverifiable") == (shown["state"], shown["observed"])
    house.until(lambda: "observed" not in house.entry("bot"), "it is confirmed once its keeper answers")
    known = lines(house, "bot")
    assert known == lines(house, "bot")


def test_this_system_can_pause() -> None:
    assert capability.this_os() in capability.SYSTEMS

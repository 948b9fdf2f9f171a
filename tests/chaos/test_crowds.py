"""Many at once: starts of many agents, starts of one, first commands with what a dead engine left behind."""

import os
import random
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.chaos import agents, conftest, evidence
from tests.chaos.tally import Tally
from tests.house import House, until

from kt_client import ignition
from kt_client.errors import KtError
from kt_client.link import Link

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

LONG = conftest.LONG
CROWD = 50 if LONG else 8
LEFT = ["a stale socket", "a file for a socket"] if LONG else ["a stale socket"]
SLEEPER = agents.BEGIN + "\ntime.sleep(600)\n"


def at_once(work: Any, count: int) -> list[Any]:
    """Do something `count` times at the same time; return what came of each."""
    with ThreadPoolExecutor(count) as pool:
        return [each.result() for each in [pool.submit(work, n) for n in range(count)]]


def test_many_agents_start_and_stop_at_once(house: House, tally: Tally) -> None:
    names = [f"bot-{n}" for n in range(CROWD)]
    for name in names:
        house.register(name, SLEEPER)
    tally.agents = CROWD

    started = at_once(lambda n: house.start(names[n]), CROWD)
    stopped = at_once(lambda n: house.stop(names[n]), CROWD)

    assert {"running"} == {answer["state"] for answer in started}
    assert {"stopped"} == {answer["state"] for answer in stopped}
    tally.survivors += house.stop_everything()
    for name in names:
        evidence.count_spawns(house, name, tally)


@pytest.mark.long
def test_one_agent_started_by_many_runs_once(house: House, tally: Tally) -> None:
    house.register("bot", SLEEPER)
    tally.agents = 1

    def start(_: int) -> Any:
        try:
            return house.start("bot")
        except KtError as refused:
            return refused

    answers = at_once(start, CROWD)

    started = [answer for answer in answers if not isinstance(answer, KtError)]
    assert 1 == len(started)
    assert {4} == {answer.exit_code for answer in answers if isinstance(answer, KtError)}
    tally.survivors += house.stop_everything()
    evidence.count_spawns(house, "bot", tally)
    assert 1 == tally.spawned


@pytest.mark.chaos
@pytest.mark.long
def test_verbs_at_random_leave_at_most_one_run_alive(
    house: House, tally: Tally, chance: random.Random
) -> None:
    house.register("bot", SLEEPER)
    tally.agents = 1
    seen: list[int] = []

    def act(verb: str) -> None:
        try:
            if verb == "start":
                house.start("bot")
            elif verb == "stop":
                house.stop("bot", timeout_s=2)
            else:
                house.ask(
                    "POST", "/v1/agents/bot/restart", {"env": {"PATH": os.environ["PATH"]}, "timeout_s": 2}
                )
        except KtError as refused:
            assert refused.exit_code in (1, 4), refused  # interrupted by another's stop, or the wrong state
        seen.append(len(living(house)))

    verbs = [chance.choice(("start", "stop", "restart")) for _ in range(CROWD)]
    at_once(lambda n: act(verbs[n]), CROWD)

    assert max(seen) <= 1
    tally.survivors += house.stop_everything()
    evidence.count_spawns(house, "bot", tally)


def living(house: House) -> set[str]:
    """Return the Runs of which a process lives."""
    found = set()
    for run in house.files.runs.iterdir() if house.files.runs.is_dir() else ():
        for folder in Path("/proc").iterdir():
            try:
                if (
                    folder.name.isdecimal()
                    and f"KT_RUN={run.name}".encode() in (folder / "environ").read_bytes()
                ):
                    found.add(run.name)
            except OSError:
                continue
    return found


@pytest.mark.parametrize("left", LEFT)
def test_first_commands_of_many_start_one_engine(tmp_path: Path, tally: Tally, left: str) -> None:
    house = House(tmp_path / "state")
    house.root.mkdir(mode=0o700)
    if left == "a stale socket":
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(house.files.engine_socket))
    else:
        house.files.engine_socket.write_text("")
    house.files.engine_lock.write_text("1\n")  # init lives, and is no engine
    house.files.engine_record.write_text('{"pid": 1, "start_ticks": 1, "boot_id": "x", "version": "0"}')

    def command(_: int) -> int:
        ignition.ensure(house.files, deadline_s=40)
        return int(Link(house.files.engine_socket).ask("GET", "/v1/engine", timeout_s=40)["pid"])

    try:
        pids = at_once(command, CROWD)

        assert 1 == len(set(pids))
        assert 1 == len([process for process in house.processes() if process.pid in pids])
        until(lambda: house.files.engine_record.read_text().count(str(pids[0])), "the record is the engine's")
    finally:
        tally.survivors += house.stop_everything()
        house.end()

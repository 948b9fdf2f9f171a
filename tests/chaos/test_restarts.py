"""Agents that end again and again: each comes back exactly as often as its policy says, whoever is killed between."""

import random
from typing import Any

import pytest
from tests.chaos import agents, conftest, evidence
from tests.chaos.tally import Tally
from tests.house import House, until

from kt_cli.demo.provider_process import ProviderProcess

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

LONG = conftest.LONG
SHORT_LIVED = agents.BEGIN + "\ntime.sleep(float(sys.argv[1]))\nsys.exit(int(sys.argv[2]))\n"
LIMIT = 4 if LONG else 2
"""Failures within the window until an agent is parked: one start more than it is brought back."""


def parked(house: House, name: str) -> Any:
    found = house.entry(name)
    return found if found.get("restart", {}).get("parked") else None


def any_agent(house: House, *names: str) -> bool:
    """Tell whether one of the agents runs, judged without an engine."""
    begun = [evidence.spawns(house, name)[-1] for name in names]
    return any(not house.files.run(run_id).exit.exists() for run_id in begun)


@pytest.mark.chaos
@pytest.mark.long
def test_a_storm_of_restarts_is_exact(house: House, tally: Tally, chance: random.Random) -> None:
    lives = {"crashing": ("1.2", "3", "on-failure"), "looping": ("1.2", "0", "always")}
    lives |= {"done": ("0.6", "0", "on-failure"), "gone": ("0.6", "7", "never")}
    for name, (lives_s, code, policy) in lives.items():
        house.register(name, SHORT_LIVED, lives_s, code)
        house.set(name, "restart.policy", policy)
        house.set(name, "restart.limit", str(LIMIT))
        house.start(name)
    tally.agents = len(lives)

    for _ in range(2 * LIMIT if LONG else 1):
        seen = len(evidence.spawns(house, "crashing")) + len(evidence.spawns(house, "looping"))
        house.kill_engine()
        tally.engine += 1
        if chance.random() < 0.5 or not any_agent(house, "crashing", "looping"):
            house.spawn()  # where no agent runs there is no keeper either, and a command brings the engine back
        until(
            lambda seen=seen: (
                len(evidence.spawns(house, "crashing")) + len(evidence.spawns(house, "looping")) > seen
                or (parked(house, "crashing") and parked(house, "looping"))
            ),
            "somebody came back, or nobody will",
        )
    ends = {
        name: until(lambda name=name: parked(house, name), f"{name} is parked") for name in list(lives)[:2]
    }
    ends |= {"done": house.wait_for_state("done", "stopped"), "gone": house.wait_for_state("gone", "failed")}

    wanted = {"crashing": LIMIT, "looping": LIMIT, "done": 1, "gone": 1}
    assert {name: count - 1 for name, count in wanted.items()} == {
        name: end["restart_count"] for name, end in ends.items()
    }
    for name, end in ends.items():
        tally.wrong_exits += end["exit"] != {"code": int(lives[name][1]), "signal": None}
    tally.survivors += house.stop_everything()
    # An engine that dies between intent and keeper leaves a Run that never began; it counts as a failure.
    assert wanted == {name: len(evidence.runs(house, name)) for name in lives}
    for name in lives:
        evidence.count_spawns(house, name, tally)


@pytest.mark.long
def test_a_program_that_is_gone_is_tried_once(house: House, tally: Tally) -> None:
    program = evidence.executable(
        house.root.parent / "agent", "#!/bin/sh\necho $KT_RUN >> spawned\nsleep 1.2\nexit 3\n"
    )
    house.register_command("bot", str(program))
    house.start("bot")
    program.unlink()
    tally.agents = 1

    house.kill_engine()
    house.boot()
    tally.engine += 1
    end = until(lambda: parked(house, "bot"), "it is parked")

    assert "failed" == end["state"]
    assert str(program) in end["restart"]["parked"]
    assert 1 == len(evidence.spawns(house, "bot"))


REFUSED = (
    agents.BEGIN
    + """
import http.client
from urllib.parse import urlsplit

base = urlsplit(os.environ["OPENAI_BASE_URL"])
with open("asked", "a") as asked:
    asked.write(f"{time.time()}\\n")
connection = http.client.HTTPConnection(base.netloc, timeout=30)
connection.request("POST", base.path + "/chat/completions", '{"model": "limit/limited", "messages": []}',
                   {"content-type": "application/json", "authorization": "Bearer sk-own"})
answer = connection.getresponse()
answer.read()
while time.time() < float(sys.argv[1]):  # ready first, then gone
    time.sleep(0.05)
time.sleep(0.5)
sys.exit(1)
"""
)
CASE = """
synthetic = true
[request]
body = '{"model": "limit/limited", "messages": []}'
[response]
status = 429
headers = { content-type = "application/json", retry-after = "%d" }
framing = "sized"
body = "body.json"
pieces = "whole"
[expect]
completeness = "unknown"
status = 429
"""
RETRY_AFTER_S = 4 if LONG else 2


def test_an_agent_whose_provider_says_429_waits_until_then(house: House, tally: Tally, tmp_path: Any) -> None:
    folder = tmp_path / "fixtures" / "wire" / "limit" / "limited"
    folder.mkdir(parents=True)
    (folder / "case.toml").write_text(CASE % RETRY_AFTER_S)
    (folder / "body.json").write_text('{"error": {"message": "slow down", "code": "rate_limit_exceeded"}}')
    tally.agents = 1
    with ProviderProcess(tmp_path / "fixtures", tmp_path / "limits.ndjson") as provider:
        house.register("bot", REFUSED, "0", observe=True)
        house.set("bot", "metering.upstream_base_url", f"{provider.url}/v1")
        house.set("bot", "restart.limit", "1")  # a failure of its own would park it at once
        house.start("bot")
        house.wait_for_state("bot", "failed")

        house.kill_engine()
        house.boot()  # no keeper is left to do that
        tally.engine += 1
        asked = house.files.home("bot") / "asked"
        until(lambda: len(asked.read_text().split()) == 2, "it asked again")
        until(lambda: len(provider.calls()) == 2, "the provider has it in its log")

        first, second = map(float, asked.read_text().split())
        waits = house.entry("bot")["restart_count"], len(provider.calls())
    tally.figures["asked again after a 429 with retry-after"] = (
        f"{second - first:.1f} s, told {RETRY_AFTER_S} s"
    )
    assert RETRY_AFTER_S <= second - first < RETRY_AFTER_S + 15
    assert (1, 2) == waits

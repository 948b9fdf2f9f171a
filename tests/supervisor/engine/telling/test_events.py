"""What happened, told by real engines: in one order, each once, whoever reads it and however slowly."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

SLEEPS = "import time\nprint('up', flush=True)\ntime.sleep(600)"
FAILS = "import sys, time\ntime.sleep(1.5)\nsys.exit(3)"
REPORTS = """
import sys, time
for n in range(int(sys.argv[1])):
    print('KTESIO_USAGE {"sequence":%d,"input_tokens":2,"output_tokens":1}' % n, flush=True)
time.sleep(600)
"""
KILLS = 12 if "KT_CHAOS" in os.environ else 3


def told(house: Any, query: str = "after=0") -> list[dict[str, Any]]:
    return list(house.link.lines(f"/v1/events?{query}", timeout_s=30))


def last(house: Any) -> int:
    found = told(house, "limit=1")
    return int(found[0]["seq"]) if found else 0


class Stream:
    """A reader of `/v1/events` over a plain HTTP client, with headers of its own."""

    def __init__(self, house: Any, target: str, **headers: str) -> None:
        self._connection = http.client.HTTPConnection("engine", timeout=30)
        endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        endpoint.settimeout(30)
        endpoint.connect(str(house.files.engine_socket))
        self._connection.sock = endpoint
        self._connection.request("GET", target, headers=headers)
        self.answer = self._connection.getresponse()

    def line(self) -> bytes:
        return self.answer.readline()

    def block(self) -> dict[str, str]:
        """Return the next event of a `text/event-stream`."""
        fields: dict[str, str] = {}
        while (line := self.line().decode().rstrip("\n")) or not fields:
            name, _, value = line.partition(": ")
            fields |= {name: value} if name else {}
        return fields

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def stream(house: Any) -> Iterator[Any]:
    made: list[Stream] = []

    def opened(target: str, **headers: str) -> Stream:
        made.append(Stream(house, target, **headers))
        return made[-1]

    yield opened
    for one in made:
        one.close()


def test_a_life_is_told_in_order_with_the_contracts_payload(house: Any) -> None:
    before = last(house)
    house.register("bot", SLEEPS)
    house.set("bot", "agent.TOKEN", "secret:TOKEN", TOKEN="sk-very-secret")
    house.start("bot", TOKEN="sk-very-secret")
    house.stop("bot")
    house.ask("DELETE", "/v1/agents/bot?home=delete")

    found = told(house, f"after={before}")

    assert list(range(before + 1, before + 1 + len(found))) == [one["seq"] for one in found]
    moves = [(one["prior_state"], one["new_state"]) for one in found if one["kind"] == "transition"]
    assert [
        ("registered", "starting"),
        ("starting", "running"),
        ("running", "stopping"),
        ("stopping", "stopped"),
    ] == moves
    assert ["registered", "configuration"] == [one["kind"] for one in found[:2]]
    assert "removed" == found[-1]["kind"]
    assert all({"schema_version", "instance", "at", "seq", "instance_id"} <= set(one) for one in found)
    assert {"bot"} == {one["instance"] for one in found}
    assert ("set", "agent.TOKEN") == (found[1]["change"], found[1]["key"])
    assert "sk-very-secret" not in json.dumps(found)


def test_usage_is_told_in_sums_that_add_up(house: Any) -> None:
    before = last(house)
    house.register("bot", REPORTS, "300")
    house.start("bot")
    house.until(lambda: house.entry("bot")["usage"]["cumulative_output_tokens"] == 300, "all is counted")

    updates = [one for one in told(house, f"after={before}") if one["kind"] == "usage_update"]

    assert 300 == sum(one["added"]["events"] for one in updates)
    assert (600, 300) == tuple(
        sum(one["added"][name] for one in updates) for name in ("input_tokens", "output_tokens")
    )
    assert 299 == updates[-1]["event"]["sequence"]
    assert len(updates) < 300


def test_events_of_one_agent_also_once_it_is_removed(house: Any) -> None:
    house.register("bot", SLEEPS)
    instance_id = house.register("other", SLEEPS)["id"]
    house.ask("DELETE", "/v1/agents/other?home=delete")

    found = told(house, f"after=0&instance={instance_id}")

    assert ["registered", "removed"] == [one["kind"] for one in found]
    refused = house.refusal("GET", "/v1/events?instance=other")
    assert 3 == refused.exit_code


@pytest.mark.parametrize("query", ["after=x", "after=-1", "limit=-1", "limit=1001", "after=99999999"])
def test_a_number_that_makes_no_sense_is_refused(house: Any, query: str) -> None:
    refused = house.refusal("GET", f"/v1/events?{query}")

    assert 2 == refused.exit_code
    assert "wanted" in str(refused)


def test_server_sent_events_have_ids_and_go_on_behind_the_last_one(house: Any, stream: Any) -> None:
    before = last(house)
    house.register("bot", SLEEPS)
    first = stream(f"/v1/events?follow=1&after={before}", accept="text/event-stream")

    one = first.block()
    house.start("bot")
    again = stream(
        "/v1/events?follow=1&after=0", **{"accept": "text/event-stream", "last-event-id": one["id"]}
    )
    two = again.block()

    assert ("registered", str(before + 1)) == (one["event"], one["id"])
    assert "text/event-stream" == first.answer.headers["content-type"]
    assert ("transition", str(before + 2)) == (two["event"], two["id"])
    assert before + 2 == json.loads(two["data"])["seq"]


def test_a_reader_that_takes_nothing_holds_up_nobody(house: Any, stream: Any) -> None:
    house.register("bot", REPORTS, "3000")
    slow = [stream("/v1/events?follow=1&after=0") for _ in range(5)]
    before = last(house)
    house.start("bot")

    house.until(lambda: house.entry("bot")["usage"]["cumulative_output_tokens"] == 3000, "all is counted")
    house.stop("bot")

    seen = []
    while not seen or seen[-1].get("new_state") != "stopped" or seen[-1]["seq"] <= before:
        if line := slow[0].line().strip():
            seen.append(json.loads(line))
    numbers = [one["seq"] for one in seen]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_a_killed_gateway_is_an_event(house: Any) -> None:
    house.register("bot", SLEEPS, observe=True)
    house.set("bot", "metering.upstream_base_url", "http://127.0.0.1:9/v1")
    house.start("bot")
    before = last(house)
    pid = house.ask("GET", "/v1/engine")["gateway"]["pid"]

    house.kill(pid)

    found = house.until(
        lambda: [one for one in told(house, f"after={before}") if one["kind"] == "gateway"], "it is told"
    )
    assert ("gone", pid, None) == (found[0]["what"], found[0]["pid"], found[0]["instance"])


@pytest.mark.chaos
@pytest.mark.long
def test_a_follower_gets_each_event_once_over_killed_engines(own_house: Any) -> None:
    """The command itself; agents move on while engines die."""
    house = own_house
    house.register("bot", SLEEPS)
    house.register("crash", FAILS)
    house.set("crash", "restart.policy", "never")
    follower = subprocess.Popen(
        [sys.executable, "-m", "kt_cli.main", "events", "--follow", "--after", "0", "--json"],
        stdout=subprocess.PIPE,
        env=os.environ | {"KTESIO_STATE_DIR": str(house.root)},
    )
    seen: list[dict[str, Any]] = []
    reading = threading.Thread(target=lambda: seen.extend(map(json.loads, follower.stdout or ())))
    reading.start()
    try:
        for _ in range(KILLS):
            house.start("bot")
            house.start("crash")
            house.kill_engine()
            house.wait_for_state("crash", "failed")
            house.wait_for_state("bot", "running")
            house.stop("bot")
        everything = told(house)
        house.until(lambda: seen and seen[-1]["seq"] >= everything[-1]["seq"], "all is followed")
    finally:
        follower.send_signal(signal.SIGINT)
        follower.wait(20)
        reading.join()

    assert everything == seen[: len(everything)]
    assert list(range(1, 1 + len(seen))) == [one["seq"] for one in seen]


def test_a_follower_ends_with_an_engine_that_is_stopped_on_purpose(own_house: Any) -> None:
    follower = subprocess.Popen(
        [sys.executable, "-m", "kt_cli.main", "events", "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"KTESIO_STATE_DIR": str(own_house.root)},
        text=True,
    )
    assert follower.stdout and follower.stderr
    own_house.register("bot", SLEEPS)
    first = [follower.stdout.readline(), follower.stdout.readline()]

    own_house.stop_engine()

    assert "what=started" in first[0]
    assert "registered" in first[1]
    assert 0 == follower.wait(30)
    assert "was stopped" in follower.stderr.read()
    assert not own_house.answers()

"""Calls of a real agent to a replaying provider, asked for one by one and as they come."""

import json
import socket
import threading
from typing import Any

import pytest
from tests.provider import Seen

ASKS_THEN_REPORTS = """
import http.client, json, os, sys, time
from urllib.parse import urlsplit

base = urlsplit(os.environ["OPENAI_BASE_URL"])
def ask():
    c = http.client.HTTPConnection(base.netloc, timeout=30)
    body = json.dumps({"model": "demo/answer", "messages": [{"role": "user", "content": "hi"}]})
    c.request("POST", base.path + "/chat/completions", body, {"content-type": "application/json"})
    c.getresponse().read()
for _ in range(int(sys.argv[1])):
    ask()
for n in range(int(sys.argv[2])):
    print('KTESIO_USAGE {"sequence":%d,"input_tokens":1,"output_tokens":1}' % n)
print("done", flush=True)
while not os.path.exists("more"):
    time.sleep(0.02)
ask()
print("all", flush=True)
time.sleep(600)
"""


def begun(house: Any, provider: Seen, calls: int, reports: int) -> None:
    house.register("bot", ASKS_THEN_REPORTS, str(calls), str(reports), observe=True)
    house.set("bot", "metering.upstream_base_url", f"{provider.url}/v1")
    house.start("bot")
    house.until(lambda: "done" in [line["text"] for line in house.said("bot")], "it has called and reported")


def test_an_exact_call_stays_exact_under_any_number_of_self_reports(house: Any, provider: Seen) -> None:
    begun(house, provider, 2, 300)

    rows = house.ask("GET", "/v1/agents/bot/exchanges?limit=5")["exchanges"]

    assert ["exact", "exact"] == [row["completeness"] for row in rows]
    assert all(row["input_tokens"] for row in rows)


class Follower:
    """A raw reader of a stream of lines, which can be left at any moment."""

    def __init__(self, house: Any, target: str) -> None:
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._connection.settimeout(30)
        self._connection.connect(str(house.files.engine_socket))
        self._connection.sendall(
            f"GET {target} HTTP/1.1\r\nhost: engine\r\nconnection: close\r\n\r\n".encode()
        )
        self._file = self._connection.makefile("rb")

    def next(self) -> dict[str, Any]:
        """Return the next document, past heads and chunk sizes."""
        while True:
            line = self._file.readline()
            assert line, "the stream ended"
            if line.startswith(b"{"):
                document: dict[str, Any] = json.loads(line)
                return document

    def until(self, claim: Any) -> dict[str, Any]:
        while not claim(found := self.next()):
            pass
        return found

    def close(self) -> None:
        self._file.close()
        self._connection.close()


def test_a_follower_sees_each_call_begin_and_end_and_goes_on_by_number(house: Any, provider: Seen) -> None:
    begun(house, provider, 3, 0)
    first = Follower(house, "/v1/agents/bot/exchanges?follow=1&limit=2")
    old = [first.next() for _ in range(2)]
    (house.files.home("bot") / "more").touch()
    new = first.until(lambda row: row["seq"] > old[-1]["seq"] and row["state"] == "ended")
    first.close()

    again = Follower(house, f"/v1/agents/bot/exchanges?follow=1&after={old[0]['seq']}")
    seen = [again.next() for _ in range(2)]

    base = old[0]["seq"]
    assert base + 1 == old[1]["seq"]
    assert ("exact", 200, base + 2) == (new["completeness"], new["status"], new["seq"])
    assert [base + 1, base + 2] == [row["seq"] for row in seen]
    again.close()


def test_a_follower_of_calls_ends_when_the_agent_is_removed(house: Any, provider: Seen) -> None:
    begun(house, provider, 1, 0)
    follower = Follower(house, "/v1/agents/bot/exchanges?follow=1")
    follower.next()
    ended = threading.Event()

    def read_on() -> None:
        with pytest.raises(AssertionError, match="ended"):
            follower.until(lambda _: False)
        ended.set()

    reader = threading.Thread(target=read_on)
    reader.start()
    house.ask("DELETE", "/v1/agents/bot?home=delete&force=1")

    assert ended.wait(30)
    reader.join()
    follower.close()

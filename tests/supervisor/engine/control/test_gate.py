"""What a managed agent may ask, asked by real agents."""

import json
from pathlib import Path
from typing import Any

import pytest

ASKS = r"""
import json, os, socket, subprocess, sys, time

def ask(method, target, body=b"{}"):
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ["SOCK"])
    head = f"{method} {target} HTTP/1.1\r\nhost: e\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    s.sendall(head.encode() + body)
    data = b""
    while part := s.recv(65536):
        data += part
    return data

if len(sys.argv) == 1 or sys.argv[1] != "leaf":
    target = json.loads(os.environ["ASK"])
    way = os.environ["WAY"]
    if way == "itself":
        answers = [ask(*one) for one in target]
    else:
        # A grandchild in a session of its own, without a trace of us in its environment, whose parent has ended.
        code = "import os, sys\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"
        code += "argv = [sys.executable, '-c', sys.argv[1], 'leaf', sys.argv[2]]\n"
        code += "os.execve(sys.executable, argv, {'SOCK': sys.argv[3]})"
        out = os.path.abspath("out")
        me = open(__file__).read() if "__file__" in globals() else os.environ["SELF"]
        subprocess.run([sys.executable, "-c", code, me, json.dumps([target, out]), os.environ["SOCK"]], env={})
        while not os.path.exists(out):
            time.sleep(0.02)
        answers = [text.encode() for text in json.load(open(out))]
    print("answers", json.dumps([answer.split(b" ")[1].decode() for answer in answers]), flush=True)
    print("last", answers[-1].decode("utf-8", "replace").replace("\r\n", "|"), flush=True)
    time.sleep(600)
else:
    target, out = json.loads(sys.argv[2])
    answers = [ask(*one).decode() for one in target]
    with open(out + ".new", "w") as file:
        json.dump(answers, file)
    os.rename(out + ".new", out)
"""


def asked_from_inside(house: Any, calls: list[list[str]], way: str = "itself") -> tuple[list[int], str]:
    house.register("bot", ASKS)
    house.set("bot", "env.inherit", "@default SOCK ASK WAY SELF")
    house.start("bot", SOCK=str(house.files.engine_socket), ASK=json.dumps(calls), WAY=way, SELF=ASKS)

    def said() -> Any:
        lines = {line["text"].partition(" ")[0]: line["text"].partition(" ")[2] for line in house.said("bot")}
        return lines if {"answers", "last"} <= set(lines) else None

    lines = house.until(said, f"the agent was answered: {house.said('bot')}")
    return [int(status) for status in json.loads(lines["answers"])], lines["last"]


def test_an_agent_reads_what_concerns_itself(house: Any) -> None:
    own = [["GET", f"/v1/agents/bot{what}"] for what in ("", "/usage", "/exchanges", "/logs?follow=0")]

    assert [200] * 4 == asked_from_inside(house, own)[0]


@pytest.mark.parametrize("way", ["itself", "an orphan of it"])
def test_an_agent_changes_nothing_and_reads_nothing_of_others(house: Any, way: str) -> None:
    house.register("other", "import time\ntime.sleep(600)")
    calls = [
        ["GET", "/v1/agents"],
        ["GET", "/v1/usage"],
        ["GET", "/v1/engine"],
        ["GET", "/v1/agents/other"],
        ["GET", "/v1/agents/other/usage"],
        ["GET", "/v1/agents/bot/config?reveal=1"],
        ["GET", "/v1/agents/bot/attach"],
        [
            "PUT",
            "/v1/agents/bot/config",
        ],
        ["DELETE", "/v1/agents/bot?force=1"],
        ["POST", "/v1/agents/bot/stop"],
        ["POST", "/v1/agents/bot/send"],
        ["POST", "/v1/agents/other/start"],
        ["POST", "/v1/engine/stop"],
        ["POST", "/v1/engine/handover"],
        ["GET", "/v1/no-such-call"],
    ]

    statuses, last = asked_from_inside(house, calls, way)

    assert [403] * len(calls) == statuses
    assert '"code": "inside_an_agent", "exit_code": 1' in last
    assert "running" == house.entry("bot")["state"]
    assert "registered" == house.entry("other")["state"]


def test_a_refusal_in_a_loop_is_told_once(house: Any) -> None:
    statuses, _ = asked_from_inside(house, [["POST", "/v1/agents/bot/stop"]] * 50)

    run_id = house.entry("bot")["run_id"]
    told = [line for line in house.log().splitlines() if "refused POST /v1/agents/{name}/stop" in line]
    pid = str(house.entry("bot")["pid"])
    assert [403] * 50 == statuses
    assert 1 == sum(pid in line for line in told), (run_id, told)


def test_a_run_that_is_over_is_nobodys_and_outside_is_outside(house: Any) -> None:
    asked_from_inside(house, [["GET", "/v1/agents/bot"]])
    house.stop("bot")

    assert "stopped" == house.ask("GET", "/v1/agents/bot")["instance"]["state"]
    assert house.ask("GET", "/v1/agents")["instances"]
    assert Path(house.root).stat().st_mode & 0o077 == 0

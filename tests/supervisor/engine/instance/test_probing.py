import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests import ports

from kt_client.errors import KtError
from kt_manifest.contract.snapshot import Ready

SLEEPS = "import time\ntime.sleep(600)"
LATE_LINE = """
import sys, time
time.sleep(0.6)
for piece in ("half: ", "re", "ready\\n"):
    sys.stderr.write(piece)
    sys.stderr.flush()
    time.sleep(0.1)
time.sleep(600)
"""
LATE_PORT = """
import http.server, sys, threading, time
time.sleep(0.6)
class Answer(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Answer.asked += 1
        self.send_response(503 if Answer.asked < 3 else 204)
        self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""
LATE_FILE = "import pathlib, sys, time\ntime.sleep(0.6)\npathlib.Path(sys.argv[1]).touch()\ntime.sleep(600)"


@pytest.fixture
def free_port() -> int:
    return ports.free()


def start_s(house: Any, name: str) -> float:
    begun_s = time.monotonic()
    assert "running" == house.start(name)["state"]
    return time.monotonic() - begun_s


def test_a_line_in_pieces_makes_it_ready(house: Any) -> None:
    house.register("bot", LATE_LINE, ready=Ready(line="ready$", stream="stderr"))

    took_s = start_s(house, "bot")

    assert 0.8 <= took_s < 30
    texts = [line["text"] for line in house.said("bot")]
    assert texts.index("half: reready") < texts.index("starting -> running (adapter-ready)")


@pytest.mark.parametrize("way", ["port", "http"])
def test_a_port_or_a_good_answer_makes_it_ready(house: Any, way: str, free_port: int) -> None:
    ready = (
        Ready(port=str(free_port)) if way == "port" else Ready(http=f"http://127.0.0.1:{free_port}/health")
    )
    house.register("bot", LATE_PORT, str(free_port), ready=ready)

    assert 0.6 <= start_s(house, "bot") < 30


def test_a_command_that_ends_with_zero_makes_it_ready(house: Any, tmp_path: Any) -> None:
    mark = tmp_path / "mark"
    house.register("bot", LATE_FILE, str(mark), ready=Ready(command=("test", "-e", str(mark))))

    assert 0.6 <= start_s(house, "bot") < 30


def test_who_is_not_ready_in_time_did_not_start(house: Any) -> None:
    house.register("bot", f"print('busy')\n{SLEEPS}", ready=Ready(line="never", deadline_s=0.5))

    refused = house.refusal("POST", "/v1/agents/bot/start", {"env": {}})

    assert 1 == refused.exit_code
    assert "was not ready within 0.5 s, wanted a line that matches 'never'" in str(refused)
    assert "busy" in str(refused)
    assert "failed" == house.entry("bot")["state"]


def test_who_ends_before_it_is_ready_did_not_start(house: Any) -> None:
    house.register("bot", "import time\ntime.sleep(0.6)\nraise SystemExit(5)", ready=Ready(line="never"))

    refused = house.refusal("POST", "/v1/agents/bot/start", {"env": {}})

    assert "ended before it was ready with exit code 5" in str(refused)


def test_a_stop_need_not_wait_for_readiness(house: Any) -> None:
    house.register("bot", SLEEPS, ready=Ready(line="never", deadline_s=600))
    with ThreadPoolExecutor(1) as other:
        starting = other.submit(house.start, "bot")
        house.until(lambda: house.entry("bot").get("run_id") and house.processes(), "the start is under way")
        house.until(lambda: house.entry("bot")["state"] == "starting", "it is starting")

        stopped = house.stop("bot")

        with pytest.raises(KtError) as told:
            starting.result()
    assert "stopped" == stopped["state"]
    assert "was stopped while it was starting" in str(told.value)


def test_a_start_that_waits_survives_the_engine(house: Any) -> None:
    house.register("bot", LATE_LINE.replace("0.6", "3"), ready=Ready(line="ready"))
    with ThreadPoolExecutor(1) as other:
        starting = other.submit(house.start, "bot")
        house.until(lambda: house.entry("bot").get("run_id"), "the start is under way")
        run_id = house.entry("bot")["run_id"]
        house.until(lambda: house.files.run(run_id).record.exists(), "its agent is there")

        house.kill_engine()
        with pytest.raises(KtError):
            starting.result()
    house.boot()

    entry = house.wait_for_state("bot", "running")
    texts = [line["text"] for line in house.said("bot")]
    assert run_id == entry["run_id"]
    assert texts.index("half: reready") < texts.index("starting -> running (adapter-ready)")


def test_a_restart_need_not_wait_for_readiness_either(house: Any) -> None:
    house.register("bot", SLEEPS, ready=Ready(line="never", deadline_s=600))
    with ThreadPoolExecutor(1) as other:
        starting = other.submit(house.start, "bot")
        house.until(lambda: house.entry("bot")["state"] == "starting", "it is starting")
        first = house.entry("bot")["run_id"]

        with ThreadPoolExecutor(1) as third:
            restarting = third.submit(
                house.ask, "POST", "/v1/agents/bot/restart", {"env": {}, "timeout_s": 5}
            )
            house.until(lambda: house.entry("bot")["run_id"] != first, "another Run has begun")
            house.stop("bot")
            with pytest.raises(KtError):
                restarting.result()
        with pytest.raises(KtError):
            starting.result()
    assert "stopped" == house.entry("bot")["state"]


def test_an_agent_that_says_much_before_it_is_ready_is_not_held_up_by_its_disk_cap(house: Any) -> None:
    talks = "import os, time\nfor _ in range(40): os.write(1, (b'y' * 99 + b'\\n') * 1000)\nprint('ready')\n"
    talks += "time.sleep(600)"
    house.register("bot", talks, ready=Ready(line="^ready$", deadline_s=30))
    house.set("bot", "logs.cap", "1M")

    assert start_s(house, "bot") < 25

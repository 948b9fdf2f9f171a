import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from kt_client.errors import KtError
from kt_manifest.contract import kinds

READS = "import sys, time\nprint('up', flush=True)\nfor line in sys.stdin:\n    "
ECHO = READS + "print('got', repr(line), flush=True)"
DEAF = "import time\nprint('up', flush=True)\ntime.sleep(600)"


@pytest.fixture
def talk(house: Any) -> Callable[..., Any]:
    """Register and start an agent that reads its input."""

    def begin(code: str, name: str = "bot", *, url: str | None = None) -> Any:
        adapter = json.loads(
            kinds.command([sys.executable, "-u", "-c", code], interactive=True, observe=False).to_json()
        )
        adapter |= {"send_url": url} if url else {}
        house.ask("POST", "/v1/agents", {"name": name, "adapter": json.dumps(adapter)})
        house.start(name)
        house.until(lambda: heard(house, name, all_of_it=True), "it is up")
        return house

    return begin


def heard(house: Any, name: str = "bot", *, all_of_it: bool = False) -> list[str]:
    lines = [line["text"] for line in house.said(name) if line["stream"] == "agent-out"]
    return lines if all_of_it else [line.removeprefix("got ") for line in lines if line.startswith("got ")]


def send(house: Any, text: str, name: str = "bot") -> Any:
    return house.ask("POST", f"/v1/agents/{name}/send", {"text": text})


def test_a_message_arrives_with_one_newline_and_byte_for_byte(talk: Any) -> None:
    house = talk(ECHO)

    answers = [send(house, text) for text in ("hello", "line\n", "--flag é", "\udcff\x00", "")]

    house.until(lambda: len(heard(house)) == 5, "all have arrived")
    assert ["'hello\\n'", "'line\\n'", "'--flag é\\n'", "'\\udcff\\x00\\n'", "'\\n'"] == heard(house)
    told = {"name": "bot", "bytes": 6, "verdict": "delivered", "how": "stdin"}
    assert {"schema_version": 1, **told} == answers[0]


def test_messages_of_many_senders_never_mix_and_keep_whole(talk: Any) -> None:
    house = talk(READS + "print('got', line[0], len(line), len(set(line)), flush=True)")
    letters = "abcdefgh"

    threads = [threading.Thread(target=send, args=(house, letter * 200_000)) for letter in letters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    house.until(lambda: len(heard(house)) == 8, "all have arrived")
    assert {f"{letter} 200001 2" for letter in letters} == set(heard(house))


def test_an_agent_that_never_reads_is_a_bounded_refusal_and_holds_up_nobody(talk: Any) -> None:
    house = talk(DEAF)
    talk(ECHO, "other")
    begun_s = time.monotonic()
    refused: list[KtError] = []

    late = threading.Thread(
        target=lambda: refused.append(house.refusal("POST", "/v1/agents/bot/send", {"text": "x" * (1 << 20)}))
    )
    late.start()
    asked_s = time.monotonic()
    send(house, "meanwhile", "other")
    house.entry("bot")
    meanwhile_s = time.monotonic() - asked_s
    late.join()

    assert 6 == refused[0].exit_code
    assert "got 65536 of 1048577 bytes" in str(refused[0])
    assert meanwhile_s < 4.5
    assert 4.9 < time.monotonic() - begun_s < 25
    assert "'meanwhile\\n'" in house.until(lambda: heard(house, "other"), "the other one reads")


def test_a_message_that_was_cut_short_does_not_become_part_of_the_next(talk: Any, tmp_path: Any) -> None:
    go = tmp_path / "go"
    code = "import os, sys, time\nprint('up', flush=True)\n"
    code += f"while not os.path.exists({str(go)!r}):\n    time.sleep(0.02)\n"
    house = talk(code + "for line in sys.stdin:\n    print('got', len(line), line[:4], flush=True)")

    refused = house.refusal("POST", "/v1/agents/bot/send", {"text": "x" * 100_000})
    go.touch()
    send(house, "next")

    house.until(lambda: len(heard(house)) == 2, "both are read")
    assert 6 == refused.exit_code
    assert ["65537 xxxx", "5 next"] == heard(house)


def test_who_cannot_be_sent_to_is_told_why(talk: Any) -> None:
    house = talk(ECHO)
    house.register("deaf", DEAF)
    house.start("deaf")
    house.stop("bot", timeout_s=0)

    codes = [
        house.refusal("POST", f"/v1/agents/{name}/send", {"text": "x"}).exit_code
        for name in ("bot", "deaf", "nobody")
    ]

    assert [4, 5, 3] == codes
    assert 2 == house.refusal("POST", "/v1/agents/bot/send", {"text": "x" * (3 << 20)}).exit_code


def test_a_new_engine_sends_to_the_old_agent_which_never_saw_an_end(talk: Any) -> None:
    house = talk(ECHO)
    pid = house.entry("bot")["pid"]
    send(house, "one")
    house.kill_engine()
    house.wait_for_engine()

    send(house, "two")

    house.until(lambda: len(heard(house)) == 2, "both have arrived")
    assert ["'one\\n'", "'two\\n'"] == heard(house)
    assert (pid, "running") == (house.entry("bot")["pid"], house.entry("bot")["state"])


def test_the_engine_holds_a_writer_of_its_own(talk: Any) -> None:
    house = talk(ECHO)
    fifo = str(house.files.run(house.entry("bot")["run_id"]).stdin)
    folder = Path(f"/proc/{house.engine_pid()}/fd")

    held = [str(path.readlink()) for path in folder.iterdir() if path.is_symlink()]

    assert 1 == held.count(fifo)


def test_a_descriptor_is_given_back_with_each_run(talk: Any) -> None:
    house = talk(ECHO)
    folder = Path(f"/proc/{house.engine_pid()}/fd")
    house.stop("bot", timeout_s=0)
    before = len(list(folder.iterdir()))

    for _ in range(3):
        house.start("bot")
        house.stop("bot", timeout_s=0)

    house.until(lambda: len(list(folder.iterdir())) <= before + 1, "the descriptors are given back")


class _Taking(BaseHTTPRequestHandler):
    status = 200
    taken: list[tuple[str, str, bytes]] = []  # noqa: RUF012 (one server a test)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.taken.append((self.path, self.headers["content-type"], body))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, type[_Taking]]]:
    kind = type("Taking", (_Taking,), {"taken": []})
    serving = HTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{serving.server_port}/say", kind
    serving.shutdown()
    thread.join()
    serving.server_close()


def test_a_declared_address_gets_the_message_instead(talk: Any, server: Any) -> None:
    url, kind = server
    house = talk(ECHO, url=url)

    answer = send(house, "hello é")
    kind.status = 503
    refused = house.refusal("POST", "/v1/agents/bot/send", {"text": "x"})

    assert ("/say", "text/plain; charset=utf-8", "hello é\n".encode()) == kind.taken[0]
    assert "http" == answer["how"]
    assert (1, True) == (refused.exit_code, "status 503" in str(refused))
    assert [] == heard(house)
    assert 5 == house.refusal("POST", "/v1/agents/bot/eof").exit_code


def test_a_declared_address_where_nobody_listens_is_told(talk: Any) -> None:
    house = talk(ECHO, url="http://127.0.0.1:9/say")

    refused = house.refusal("POST", "/v1/agents/bot/send", {"text": "x"})

    assert 1 == refused.exit_code
    assert "127.0.0.1:9" in str(refused)


def test_an_input_that_is_ended_is_read_to_its_end_and_takes_no_more(talk: Any) -> None:
    house = talk(
        READS
        + "print('got', line.strip(), flush=True)\nprint('got the end', flush=True)\nwhile 1: time.sleep(9)"
    )
    send(house, "last")

    try:
        answer = house.ask("POST", "/v1/agents/bot/eof")
    except KtError as refused:
        assert (5, True) == (
            refused.exit_code,
            "op: got 'eof'" in str(refused),
        )  # a keeper of an older version
        return

    assert "closed" == answer["input"]
    house.until(lambda: heard(house) == ["last", "the end"], "the agent has read the end")
    assert 4 == house.refusal("POST", "/v1/agents/bot/send", {"text": "x"}).exit_code
    house.kill_engine()
    house.wait_for_engine()
    assert 4 == house.refusal("POST", "/v1/agents/bot/send", {"text": "x"}).exit_code

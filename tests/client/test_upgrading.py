import contextlib
import fcntl
import json
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.house import until

from kt_client import upgrading
from kt_client.blocking import Client
from kt_client.errors import KtError, WrongState
from kt_client.link import Link
from kt_ledger.version import VERSION

SLEEPS = "import time\ntime.sleep(600)"


@pytest.mark.parametrize(
    ("seen", "words"), [("0.0.9", "kt engine upgrade"), ("99.0", "use the newer kt"), ("0.0.9rc1", "upgrade")]
)
def test_another_version_is_told_with_its_remedy(seen: str, words: str) -> None:
    assert words in str(upgrading.hint(seen))
    assert seen in str(upgrading.hint(seen))


def test_the_same_version_is_no_news() -> None:
    assert upgrading.hint(VERSION) is None


def test_where_none_runs_an_upgrade_is_a_start(shared_client: Client) -> None:
    if shared_client.engine_status()["running"]:
        shared_client.engine_stop()

    told = shared_client.engine_upgrade()

    assert told["replaced"] is None
    assert shared_client.engine_status()["pid"] == told["engine"]["pid"]


def test_an_upgrade_keeps_runs_and_lets_a_start_under_way_finish(shared_client: Client) -> None:
    for name in ("old", "new"):
        shared_client.register(name, kind="command", command=[sys.executable, "-c", SLEEPS])
    run_id = shared_client.start("old")["run_id"]
    answers: list[Any] = []
    starting = threading.Thread(target=lambda: answers.append(shared_client.start("new")))
    starting.start()
    until(lambda: shared_client.show("new")["instance"]["state"] != "registered", "the start is under way")

    told = shared_client.engine_upgrade()
    starting.join(60)

    assert told["replaced"]["pid"] != told["engine"]["pid"]
    assert ["running"] == [answer["state"] for answer in answers]
    entries = {entry["name"]: entry for entry in shared_client.list()["instances"]}
    assert run_id == entries["old"]["run_id"]
    assert answers[0]["run_id"] == entries["new"]["run_id"]
    assert {"running"} == {entry["state"] for entry in entries.values()}
    assert not shared_client.files.engine_stopped.exists()


def test_callers_who_ask_during_an_upgrade_are_all_answered(shared_client: Client) -> None:
    shared_client.register("bot", kind="mock")
    failures: list[Exception] = []
    over = threading.Event()
    asked = [0]

    def ask() -> None:
        while not over.is_set():
            try:
                shared_client.list()
                asked[0] += 1
            except KtError as error:
                failures.append(error)
            over.wait(0.005)  # leaves some of the machine to those that are asked

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        shared_client.engine_upgrade()
    finally:
        over.set()
        for thread in threads:
            thread.join(60)

    assert [] == failures
    assert asked[0]


@pytest.mark.chaos
@pytest.mark.long
def test_keepers_bring_an_engine_back_where_nobody_follows(client: Client) -> None:
    client.register("bot", kind="command", command=[sys.executable, "-c", SLEEPS])
    run_id = client.start("bot")["run_id"]
    link = Link(client.files.engine_socket)
    old = link.ask("GET", "/v1/engine")["pid"]

    link.ask("POST", "/v1/engine/handover", body={"timeout_s": 5})
    while not link.answers():
        assert not client.files.engine_stopped.exists()

    assert old != link.ask("GET", "/v1/engine")["pid"]
    assert run_id == client.show("bot")["instance"]["run_id"]


@pytest.mark.chaos
@pytest.mark.long
def test_a_lock_that_a_keeper_holds_is_no_reason_to_wait(client: Client) -> None:
    client.engine_start()
    turn = os.open(client.files.engine_waking, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(turn, fcntl.LOCK_EX)

    told = client.engine_upgrade()

    os.close(turn)
    assert told["replaced"]["pid"] != told["engine"]["pid"]


def test_an_engine_without_a_hand_over_is_stopped_and_followed(script: Any, kt: Any, tmp_path: Path) -> None:
    """What an older engine says is scripted: there is none in this tree."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    script.answer_json(200, {"pid": ended.pid, "version": "0.0.1"})
    script.answer_json(404, {"error": {"code": "no_such_call", "exit_code": 2, "message": "no such call"}})
    script.answer_json(200, {"stopped": True})
    script.answer_json(200, {"pid": 1, "version": "0.0.1", "store": "ok"})

    told = upgrading.upgrade(Client(kt.state).files)

    asked = [json.loads(head.partition(b"\r\n\r\n")[2] or b"{}") for head in script.heads]
    assert {"all": False} == asked[2]
    assert "0.0.1" == told["replaced"]["version"]


@pytest.mark.chaos
@pytest.mark.long
def test_an_engine_older_than_its_ledger_says_so_and_still_stops_agents(client: Client) -> None:
    client.register("bot", kind="command", command=[sys.executable, "-c", SLEEPS])
    client.start("bot")
    client.engine_stop()
    known = schema_of(client, "from_the_future")

    with pytest.raises(KtError, match="a later kt has written it"):
        client.engine_upgrade()
    with pytest.raises(KtError, match="a later kt has written it") as refused:
        client.register("other", kind="mock")
    stopped = client.stop("bot", timeout_s=5)
    client.engine_stop()
    schema_of(client, known)

    assert 1 == refused.value.exit_code
    assert "stopped" == stopped["state"]
    assert ["bot"] == [entry["name"] for entry in client.list()["instances"]]


def schema_of(client: Client, shall: str) -> str:
    """Write a schema's revision into the ledger that nobody has open; return the one that was there."""
    with contextlib.closing(sqlite3.connect(client.files.database)) as ledger, ledger:
        [(known,)] = ledger.execute("SELECT version_num FROM alembic_version").fetchall()
        ledger.execute("UPDATE alembic_version SET version_num = ?", (shall,))
    return str(known)


@pytest.mark.chaos
@pytest.mark.long
def test_a_long_order_keeps_its_engine_and_everybody_else_is_served_meanwhile(client: Client) -> None:
    stubborn = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
    client.register("bot", kind="command", command=[sys.executable, "-c", stubborn])
    client.start("bot")
    answers: list[Any] = []
    stopping = threading.Thread(target=lambda: answers.append(client.stop("bot", timeout_s=3)))
    stopping.start()
    until(lambda: client.show("bot")["instance"]["state"] == "stopping", "the stop is under way")
    upgrading_ = threading.Thread(target=lambda: answers.append(client.engine_upgrade()))
    upgrading_.start()

    served = 0
    pid = client.engine_status()["pid"]
    while stopping.is_alive():
        served += client.engine_status().get("pid") == pid  # it has none once the order is over
    with pytest.raises(WrongState):
        client.stop("bot")
    upgrading_.join(60)

    stopped, upgraded = answers
    assert served
    assert ("stopped", True) == (stopped["state"], stopped["forced"])
    assert (pid, []) == (upgraded["replaced"]["pid"], upgraded["notices"])


@pytest.mark.chaos
@pytest.mark.long
def test_upgrades_at_once_are_one_upgrade(client: Client) -> None:
    client.register("bot", kind="command", command=[sys.executable, "-c", SLEEPS])
    client.start("bot")
    told: list[Any] = []

    def upgrade() -> None:
        try:
            told.append(client.engine_upgrade())
        except KtError as error:
            told.append(error)

    threads = [threading.Thread(target=upgrade) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)

    # One may have come when nobody answered any more, or asked an engine that ended over its question.
    assert [one for one in told if isinstance(one, dict)]
    assert {"engine_away", "engine_lost"} >= {one.code for one in told if isinstance(one, KtError)}
    assert "running" == client.show("bot")["instance"]["state"]

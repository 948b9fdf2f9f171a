import contextlib
import fcntl
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests import small_disk
from tests.cli.conftest import Kt
from tests.house import until

from kt_client import ignition
from kt_client.blocking import Client
from kt_client.errors import KtError
from kt_client.link import Link
from kt_ledger.layout import StateLayout

AT_ONCE = 50 if "KT_CHAOS" in os.environ else 15


def engines(state: Path) -> list[int]:
    """Return the processes that are engines of this state directory."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if "kt_supervisor.engine" in words and str(state) in words:
            found.append(process.pid)
    return found


@pytest.mark.chaos
@pytest.mark.long
def test_many_commands_at_once_start_one_engine(kt: Any) -> None:
    running = [
        subprocess.Popen(
            kt.command("engine", "start", "--json"), stdout=subprocess.PIPE, env=kt.environment()
        )
        for _ in range(AT_ONCE)
    ]

    answers = [json.loads(process.communicate(timeout=100)[0]) for process in running]

    assert 1 == len({answer["pid"] for answer in answers})
    assert 1 == sum(answer["started"] for answer in answers)
    assert [answers[0]["pid"]] == engines(kt.state)


@dataclass(frozen=True)
class Begun:
    """A place in which a command has started an engine, and what two commands had said by then."""

    kt: Kt
    unused: dict[str, Any]
    pid: int


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begun]:
    kt = Kt(tmp_path_factory.mktemp("begun") / "state")
    unused = json.loads(kt("agent", "list", "--json").out)
    yield Begun(kt, unused, json.loads(kt("engine", "start", "--json").out)["pid"])
    kt.end()


def test_an_engine_outlives_its_command_in_a_session_of_its_own(begun: Begun) -> None:
    assert os.getsid(begun.pid) != os.getsid(0)
    assert {"running": True, "pid": begun.pid}.items() <= begun.kt.client.engine_status().items()


def test_the_state_directory_is_for_its_owner_only(begun: Begun) -> None:
    assert 0o700 == begun.kt.state.stat().st_mode & 0o777
    assert 0o600 == (begun.kt.state / "engine.log").stat().st_mode & 0o777


def test_the_document_of_an_empty_fleet_is_the_engines_own(begun: Begun) -> None:
    used = json.loads(begun.kt("agent", "list", "--json").out)

    assert begun.unused["totals"].items() <= used["totals"].items()


def test_a_stopped_engine_is_started_again_by_the_next_verb(shared_kt: Kt) -> None:
    shared_kt.client.engine_start()
    shared_kt("engine", "stop")
    assert [] == engines(shared_kt.state)

    done = shared_kt("agent", "list")

    assert (done.code, done.out) == (0, "No agents yet.\n")
    assert 1 == len(engines(shared_kt.state))


def test_an_engine_that_does_not_start_tells_why(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "engine.lock").mkdir(parents=True)
    layout = StateLayout(state)

    with pytest.raises(KtError, match="the engine did not start") as caught:
        ignition.ensure(layout)

    assert 1 == caught.value.exit_code
    assert "the last lines of" in str(caught.value) and "Is a directory" in str(caught.value)


def test_where_an_engine_that_ends_still_has_the_lock_another_one_is_started(kt: Any) -> None:
    ignition.make_state_dir(kt.state)
    layout = StateLayout(kt.state)
    ending = os.open(layout.engine_lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(ending, fcntl.LOCK_EX)

    def end_once_one_has_lost() -> None:
        log = layout.engine_log
        until(lambda: log.exists() and "an engine already serves" in log.read_text(), "one has lost")
        os.close(ending)

    ends = threading.Thread(target=end_once_one_has_lost)
    ends.start()
    started = ignition.ensure(layout)
    ends.join()

    assert started
    assert 1 == len(engines(kt.state))


def test_a_state_directory_that_cannot_be_made_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(KtError, match="cannot use the state directory"):
        ignition.ensure(StateLayout(tmp_path / "file" / "state"))


def test_a_very_long_state_directory_works(tmp_path: Path) -> None:
    client = Client(tmp_path / ("d" * 120) / ("e" * 120) / "state")

    client.register("bot", kind="command", command=["sleep", "600"])

    assert Link(client.files.engine_socket).answers()
    assert "running" == client.start("bot")["state"]
    client.engine_stop(everything=True)
    assert not client.engine_status()["running"]


def test_an_agent_starts_no_engine_that_would_end_with_it(kt: Any) -> None:
    (kt.state / "runs" / "the-run").mkdir(parents=True)
    (kt.state / "ledger.db").touch()

    inside = kt("agent", "list", env={"KT_RUN": "the-run"})
    elsewhere = kt(
        "agent", "list", env={"KT_RUN": "of-another-place", "KTESIO_STATE_DIR": str(kt.state / "own")}
    )

    assert (1, "") == (inside.code, inside.out)
    assert "from inside of an agent" in inside.err
    assert [] == engines(kt.state)
    assert 0 == elsewhere.code


def test_an_engine_that_finds_a_full_disk_is_told_with_the_disk(tmp_path: Path) -> None:
    with small_disk.mounted(tmp_path / "disk", "256k") as disk:
        state = disk / "state"
        ignition.make_state_dir(state)
        with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))

        with pytest.raises(KtError, match="has 0 bytes free: make room"):
            ignition.ensure(StateLayout(state))

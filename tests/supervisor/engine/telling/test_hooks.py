"""Operators' commands about what happened: run after the commit, whatever they do, and never in anybody's way."""

import json
import os
import shlex
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from kt_ledger.layout import StateLayout
from kt_ledger.records import EventRow
from kt_supervisor.engine.spawn import QUICK_BYTES, Ran, Spawner
from kt_supervisor.engine.telling import hooks
from kt_supervisor.keeper import proctree

SLEEPS = "import time\ntime.sleep(600)"
FAILS = "import sys, time\ntime.sleep(1.2)\nsys.exit(3)"
KEEPS = """
import json, os, sys
said = json.load(sys.stdin)
with open(sys.argv[1], "a") as kept:
    kept.write(json.dumps({"said": said, "env": dict(os.environ), "cwd": os.getcwd()}) + "\\n")
"""


def hook(tmp_path: Path, code: str, *words: str) -> str:
    path = tmp_path / f"hook-{abs(hash(code))}.py"
    path.write_text(code)
    return shlex.join([sys.executable, str(path), *words])


def kept(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def failures(house: Any) -> list[dict[str, Any]]:
    return [one for one in house.link.lines("/v1/events?after=0", timeout_s=30) if one["kind"] == "hook"]


def test_each_hook_gets_its_event_on_stdin_and_little_else(house: Any, tmp_path: Path) -> None:
    there = tmp_path / "there"
    house.register("bot", SLEEPS)
    for name in ("on_start", "on_stop", "on_any"):
        house.set("bot", f"hooks.{name}", hook(tmp_path, KEEPS, str(there)))
    house.start("bot", SECRET_OF_THE_CALLER="sk-very-secret")
    house.stop("bot")

    found = house.until(lambda: len(kept(there)) >= 6 and kept(there), "all hooks have run")

    order = [(one["env"]["KT_EVENT_HOOK"], one["said"]["new_state"]) for one in found]
    assert [
        ("on_any", "starting"),
        ("on_start", "running"),
        ("on_any", "running"),
        ("on_any", "stopping"),
        ("on_stop", "stopped"),
        ("on_any", "stopped"),
    ] == order
    first = found[1]
    allowed = {"PATH", "HOME", "LANG", "LC_CTYPE"}
    assert all(name in allowed or name.startswith("KT_EVENT_") for name in first["env"])
    assert str(house.files.home("bot")) == first["cwd"]
    assert ("bot", "running", str(first["said"]["seq"])) == (
        first["env"]["KT_EVENT_INSTANCE"],
        first["env"]["KT_EVENT_NEW_STATE"],
        first["env"]["KT_EVENT_SEQ"],
    )
    assert "transition" == first["said"]["kind"]


def test_a_crash_runs_its_hook_and_a_failing_hook_is_told_with_its_last_words(
    house: Any, tmp_path: Path
) -> None:
    house.register("bot", FAILS)
    house.set("bot", "hooks.on_crash", hook(tmp_path, "import sys\nprint('no \\x1b[31m mail')\nsys.exit(7)"))
    house.start("bot")

    [told] = house.until(lambda: failures(house), "the failure is told")

    assert ("hooks.on_crash", 7, False, "bot") == (
        told["hook"],
        told["code"],
        told["timed_out"],
        told["instance"],
    )
    assert "mail" in told["output"]
    about = next(house.link.lines(f"/v1/events?after={told['about'] - 1}", timeout_s=30))
    assert "failed" == about["new_state"]


@pytest.mark.parametrize(
    ("command", "how"),
    [
        ("/nowhere/at-all x", "No such file"),
        (shlex.join([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]), "signal 9"),
    ],
)
def test_a_hook_that_cannot_run_is_told_and_harms_nothing(house: Any, command: str, how: str) -> None:
    house.register("bot", SLEEPS)
    path = house.files.home("bot") / "config.toml"
    path.write_text(f"hooks.on_start = {json.dumps(command)}\n")
    before = len(failures(house))
    house.start("bot")

    told = house.until(lambda: failures(house)[before:], "the failure is told")

    assert how in told[0]["how"]
    assert "running" == house.entry("bot")["state"]


def test_hanging_hooks_hold_up_neither_agents_nor_the_end_of_the_engine(
    own_house: Any, tmp_path: Path
) -> None:
    house = own_house
    pids = tmp_path / "pids"
    code = (
        f"import os, time\nopen({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\nos.fork()\ntime.sleep(600)"
    )
    for n in range(6):
        house.register(f"bot{n}", SLEEPS)
        house.set(f"bot{n}", "hooks.on_any", hook(tmp_path, code))
    begun_s = time.monotonic()
    for n in range(6):
        house.start(f"bot{n}")
    for n in range(6):
        house.stop(f"bot{n}")
    took_s = time.monotonic() - begun_s

    house.until(lambda: pids.exists() and len(pids.read_text().split()) == hooks.AT_ONCE, "four of them hang")
    house.stop_engine()

    assert hooks.AT_ONCE == len(pids.read_text().split())
    assert all(house.is_gone(int(pid)) for pid in pids.read_text().split())
    assert took_s < 60


@pytest.mark.chaos
@pytest.mark.long
def test_a_killed_engine_runs_its_hooks_at_least_once(own_house: Any, tmp_path: Path) -> None:
    """The hook dies with its engine, undone; the next engine runs it, and the one after that does not."""
    house = own_house
    there, gate, pids = tmp_path / "there", tmp_path / "gate", tmp_path / "pids"
    waits = f"import os, time\nopen({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
    waits += f"while not os.path.exists({str(gate)!r}): time.sleep(0.02)\n"
    house.register("bot", SLEEPS)
    house.set("bot", "hooks.on_start", hook(tmp_path, waits + KEEPS, str(there)))
    house.start("bot")
    house.until(lambda: pids.exists() and pids.read_text().endswith("\n"), "the hook has begun")
    house.kill_engine()
    os.kill(int(pids.read_text()), signal.SIGKILL)

    gate.touch()
    house.wait_for_state("bot", "running")
    found = house.until(lambda: kept(there), "the hook has run")

    assert [("running", "on_start")] == [
        (one["said"]["new_state"], one["env"]["KT_EVENT_HOOK"]) for one in found
    ]
    house.stop_engine()
    house.boot()
    house.wait_for_state("bot", "running")
    house.stop("bot")
    house.stop_engine()
    assert found == kept(there)


def is_gone(pid: int) -> bool:
    """Return True once a process that was sent SIGKILL has ended."""
    ends_s = time.monotonic() + 10
    while (process := proctree.read(pid)) and process.alive():
        assert time.monotonic() < ends_s, f"process {pid} lives"
        threading.Event().wait(0.01)
    return True


# -- the command itself ------------------------------------------------------------------------------------------
def ran(tmp_path: Path, code: str, *, within_s: float = 20.0, stop: threading.Event | None = None) -> Ran:
    return Spawner(StateLayout(tmp_path)).command(
        [sys.executable, "-u", "-c", code],
        given=b"x" * 300_000,
        folder=tmp_path,
        variables={"PATH": os.defpath},
        within_s=within_s,
        tail_bytes=100,
        stop=stop or threading.Event(),
    )


def test_a_command_that_forks_leaves_nothing_of_its_group(tmp_path: Path) -> None:
    code = "import os, time\npid = os.fork()\nif pid == 0: time.sleep(600)\nprint(pid)"

    found = ran(tmp_path, code)

    assert found.is_good
    assert is_gone(int(found.output.split()[-1]))


def test_a_command_that_takes_too_long_is_ended_with_its_group(tmp_path: Path) -> None:
    code = (
        "import os, signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint(os.fork(), flush=True)\n"
        "os.close(1); os.close(2)\ntime.sleep(600)"
    )
    begun_s = time.monotonic()

    found = ran(tmp_path, code, within_s=1.0)

    assert found.timed_out and not found.is_good
    assert time.monotonic() - begun_s < 25
    assert is_gone(max(int(word) for word in found.output.split()))


def test_a_command_that_prints_without_end_costs_its_time_only(tmp_path: Path) -> None:
    before_s = time.process_time()

    found = ran(tmp_path, "while True: print('y' * 1000)", within_s=1.5)

    assert found.timed_out
    assert 100 == len(found.output)
    assert time.process_time() - before_s < 0.8
    assert QUICK_BYTES > 100


def test_a_command_is_cut_short_when_it_is_asked_for(tmp_path: Path) -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()

    found = ran(tmp_path, "import time\ntime.sleep(600)", stop=stop)

    assert found.cut_short and not found.is_good


def test_input_that_nobody_reads_and_a_folder_that_is_gone_are_no_trouble(tmp_path: Path) -> None:
    assert ran(tmp_path, "pass").is_good
    assert "No such file" in (ran(tmp_path / "gone", "pass").error or "")


def test_variables_hold_whatever_a_cause_says() -> None:
    detail = "a\0b\ud800" + "x" * 5000
    document = {"instance": "bot", "new_state": "failed", "cause": {"kind": "crashed", "detail": detail}}
    row = EventRow(seq=7, at_ns=1, instance_id="i1", kind="transition", document=document)

    told = hooks.variables(row, "hooks.on_crash")

    assert ("7", "on_crash", "crashed") == tuple(
        told[f"KT_EVENT_{name}"] for name in ("SEQ", "HOOK", "CAUSE")
    )
    assert told["KT_EVENT_DETAIL"].startswith("a\ufffdb?x")
    assert len(told["KT_EVENT_DETAIL"]) <= hooks.LONGEST_VARIABLE
    assert all(os.fsencode(value) for value in told.values())

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kt_client.errors import KtError
from kt_manifest.contract import kinds

KILLS = 20 if "KT_CHAOS" in os.environ else 4

AT_ONCE = 50 if "KT_CHAOS" in os.environ else 15

MOCK = kinds.builtin("mock").to_json()
SLEEPS = "import time\ntime.sleep(600)"
COUNTS = """
import sys, time

for n in range(int(sys.argv[1])):
    print('KTESIO_USAGE {"sequence": %d, "input_tokens": 3, "output_tokens": 2}' % n)
    if n % 100 == 0:
        time.sleep(float(sys.argv[2]))
time.sleep(600)
"""


@pytest.mark.chaos
@pytest.mark.long
def test_many_engines_at_once_are_one(empty_house: Any) -> None:
    children = [empty_house.spawn() for _ in range(AT_ONCE)]

    empty_house.wait_for_engine()
    winner = empty_house.engine_pid()
    codes = [child.wait(60) for child in children if child.pid != winner]

    assert [0] * (AT_ONCE - 1) == codes
    assert 0.8 * AT_ONCE < empty_house.log().count(f"process {winner}")


def test_a_killed_engine_is_brought_back_and_takes_its_agent_over(house: Any) -> None:
    house.register("bot", SLEEPS)
    started = house.start("bot")

    killed = house.kill_engine()
    entry = house.entry("bot")

    assert killed != house.engine_pid()
    assert ("running", started["run_id"], started["pid"]) == (entry["state"], entry["run_id"], entry["pid"])
    assert "stopped" == house.stop("bot")["state"]


def test_an_engine_starts_without_what_judges_manifests(house: Any) -> None:
    house.ask("POST", "/v1/agents", {"name": "bot", "adapter": MOCK})

    loaded = Path(f"/proc/{house.engine_pid()}/maps").read_text()

    assert "_sqlite3" in loaded
    assert "pydantic_core" not in loaded


def test_an_engine_that_a_keeper_brought_back_outlives_that_keeper(house: Any) -> None:
    house.register("first", SLEEPS)
    house.register("second", SLEEPS)
    house.start("first")
    house.kill_engine()
    house.wait_for_engine()
    house.start("second")
    revived = house.engine_pid()

    house.stop("first")

    assert revived == house.engine_pid()
    assert "running" == house.entry("second")["state"]


def test_an_exit_while_no_engine_ran_is_kept_with_its_code(house: Any) -> None:
    house.register("bot", "import sys, time\ntime.sleep(1.0)\nsys.exit(9)")
    run_id = house.start("bot")["run_id"]
    house.stop_engine()
    house.until(house.files.run(run_id).exit.exists, "the exit record is there")

    house.boot()

    entry = house.wait_for_state("bot", "failed")
    assert {"code": 9, "signal": None} == entry["exit"]


@pytest.mark.long
@pytest.mark.chaos
def test_killed_engines_count_twenty_thousand_lines_exactly_once(house: Any) -> None:
    house.register("bot", COUNTS, "20000", "0.03")
    run_id = house.start("bot")["run_id"]

    for _ in range(KILLS):
        house.kill_engine()
    house.until(
        lambda: house.entry("bot")["usage"]["sources"].get("self-reported", {}).get("events") == 20_000,
        "all lines are counted",
    )

    entry = house.entry("bot")
    assert run_id == entry["run_id"]
    assert (60_000, 40_000) == (
        entry["usage"]["cumulative_input_tokens"],
        entry["usage"]["cumulative_output_tokens"],
    )
    assert {} == {kind: count for kind, count in entry["notes"]["counts"].items() if count}


def test_a_stopped_engine_leaves_agents_running_and_keepers_quiet(house: Any) -> None:
    house.register("bot", SLEEPS)
    started = house.start("bot")

    house.stop_engine()

    assert house.files.engine_stopped.exists()
    assert Path(f"/proc/{started['pid']}").exists()
    house.boot()
    assert "running" == house.entry("bot")["state"]
    assert not house.files.engine_stopped.exists()


def test_stop_all_leaves_no_process(own_house: Any) -> None:
    house = own_house
    for name in ("a", "b"):
        house.register(name, SLEEPS)
        house.start(name)

    answer = house.ask("POST", "/v1/engine/stop", {"all": True})
    house.children[0].wait(20)

    assert [] == answer["notices"]
    house.until(lambda: not house.processes(), "nothing is left")


def test_a_dead_keeper_is_replaced_and_the_agent_sees_nothing(house: Any) -> None:
    house.register("bot", "import time\nfor n in range(10**6): print(n); time.sleep(0.002)")
    started = house.start("bot")
    before = house.run_record(started["run_id"])["keeper_pid"]

    house.kill(before)

    house.until(lambda: house.run_record(started["run_id"])["keeper_pid"] != before, "another keeper")
    known = len(house.said("bot"))
    house.until(lambda: len(house.said("bot")) > known + 100, "its output flows on")
    entry = house.entry("bot")
    assert ("running", started["run_id"], started["pid"]) == (entry["state"], entry["run_id"], entry["pid"])
    numbers = [int(line["text"]) for line in house.said("bot") if line["stream"] == "agent-out"]
    assert list(range(len(numbers))) == numbers
    assert "stopped" == house.stop("bot")["state"]


def test_the_exit_of_an_agent_whose_keeper_was_replaced_is_known_or_said_to_be_unknown(house: Any) -> None:
    house.register("bot", "import time, sys\ntime.sleep(1.5)\nsys.exit(7)")
    house.set("bot", "restart.policy", "never")
    started = house.start("bot")

    house.kill(house.run_record(started["run_id"])["keeper_pid"])

    entry = house.wait_for_state("bot", "failed")
    detail = entry["failed_cause"]["detail"]
    assert detail == "exited with code 7" or detail.startswith("its exit is not known: ")


def test_what_a_dead_agent_and_a_dead_keeper_left_is_ended(house: Any) -> None:
    house.register(
        "bot", "import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '601'])\ntime.sleep(600)"
    )
    house.set("bot", "restart.policy", "never")
    started = house.start("bot")
    house.stop_engine()
    record = house.run_record(started["run_id"])
    for pid in (record["keeper_pid"], record["agent_pid"]):
        house.kill(pid)

    house.boot()

    entry = house.wait_for_state("bot", "failed")
    assert "what was left of it was ended" in entry["failed_cause"]["detail"]
    assert "running" == house.start("bot")["state"]


def test_a_keeper_that_is_stopped_is_unverifiable_and_its_agent_left_alone(house: Any) -> None:
    house.register("bot", SLEEPS)
    started = house.start("bot")
    keeper = house.run_record(started["run_id"])["keeper_pid"]
    os.kill(keeper, signal.SIGSTOP)
    try:
        house.kill_engine()
        house.boot()

        entry = house.until(
            lambda: (found := house.entry("bot")).get("observed") == "unverifiable" and found, "it is said"
        )
    finally:
        os.kill(keeper, signal.SIGCONT)

    assert any(f"kill -CONT {keeper}" in remark for remark in entry["remarks"])
    assert not house.is_gone(started["pid"])
    house.until(lambda: "observed" not in house.entry("bot"), "it is taken over once it answers")
    assert started["run_id"] == house.entry("bot")["run_id"]


def test_a_run_of_an_earlier_boot_is_lost_and_nothing_is_signalled(house: Any) -> None:
    bystander = subprocess.Popen(["sleep", "600"])
    try:
        house.register("bot", SLEEPS)
        started = house.start("bot")
        house.stop_engine()
        record = house.run_record(started["run_id"])
        for pid in (record["keeper_pid"], record["agent_pid"]):
            house.kill(pid)
        house.files.run(started["run_id"]).record.write_text(
            json.dumps(
                record | {"boot_id": "another boot", "agent_pid": bystander.pid, "keeper_pid": bystander.pid}
            )
        )

        house.boot()

        entry = house.wait_for_state("bot", "failed")
        assert "restarted" in entry["failed_cause"]["detail"]
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_file_in_place_of_the_directory_is_refused_in_words(tmp_path: Path) -> None:
    place = tmp_path / "state"
    place.write_text("mine")

    ended = run_engine(place)

    assert 1 == ended.returncode
    assert "cannot use the state directory" in ended.stderr
    assert "mine" == place.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_somebody_elses_directory_is_refused_and_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "state"
    place.mkdir(mode=0o700)
    os.chown(place, 12345, 12345)

    ended = run_engine(place)

    assert 1 == ended.returncode
    assert "user with id 12345" in ended.stderr
    assert [] == list(place.iterdir())


def test_a_ledger_that_is_none_is_named_and_nothing_else_breaks(house: Any) -> None:
    house.register("bot", SLEEPS)
    house.start("bot")
    house.stop_engine()
    aside = house.files.database.rename(house.root / "aside.db")
    house.files.database.write_bytes(b"this is no database, but somebody's notes " * 100)

    house.boot()
    refused = house.refusal("GET", "/v1/agents")
    store = house.ask("GET", "/v1/engine")["store"]
    stopped = house.stop("bot")
    house.files.database.unlink()
    aside.rename(house.files.database)

    assert (1, "store_unavailable") == (refused.exit_code, refused.code)
    assert "not a database" in store
    assert "stopped" == stopped["state"]
    assert "stopped" == house.wait_for_state("bot", "stopped", "failed")["state"]


def test_a_ledger_that_takes_nothing_more_does_not_keep_an_agent_from_being_stopped(house: Any) -> None:
    house.register("bot", SLEEPS)
    house.start("bot")
    engine = house.engine_pid()
    before = resource.prlimit(engine, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))

    refused = house.refusal("POST", "/v1/agents", {"name": "other", "adapter": MOCK})
    stopped = house.stop("bot")
    resource.prlimit(engine, resource.RLIMIT_FSIZE, before)

    assert (1, "store_unavailable") == (refused.exit_code, refused.code)
    assert "stopped" == stopped["state"]
    assert "stopped" == house.wait_for_state("bot", "stopped")["state"]
    assert not house.files.home("other").exists()


def test_nothing_is_left_of_a_state_directory_that_is_removed(empty_house: Any) -> None:
    house = empty_house.boot()
    house.register("bot", SLEEPS, observe=True)
    house.set("bot", "metering.upstream_base_url", "http://127.0.0.1:9/v1")
    pids = [int(house.start("bot")["pid"]), house.engine_pid()]
    pids.append(int(json.loads(house.files.gateway.record.read_bytes())["pid"]))
    pids.append(int(house.run_record(house.entry("bot")["run_id"])["keeper_pid"]))

    shutil.rmtree(house.root)

    house.until(lambda: all(map(house.is_gone, pids)), "all have ended")
    assert 0 == house.children[0].wait(20)
    assert not house.root.exists()


def test_an_engine_started_by_an_agent_forgets_the_agents_run(empty_house: Any) -> None:
    empty_house.variables = {"KT_RUN": "somebody", "KT_INSTANCE": "somebody"}

    empty_house.boot()

    variables = Path(f"/proc/{empty_house.engine_pid()}/environ").read_bytes()
    assert b"KT_RUN" not in variables


def run_engine(place: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kt_supervisor.engine", "--state-dir", str(place)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30)


def test_an_engine_that_a_keeper_began_to_bring_back_leaves_a_stop_alone(house: Any) -> None:
    house.stop_engine()
    command = [sys.executable, "-m", "kt_supervisor.engine", "--revive", "--state-dir", str(house.root)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    assert 0 == done.returncode
    assert "stopped on purpose" in done.stderr
    assert house.files.engine_stopped.exists()


def test_nothing_begins_while_everything_is_being_stopped(own_house: Any) -> None:
    house = own_house
    house.register("deaf", f"import signal\nsignal.signal(15, signal.SIG_IGN)\n{SLEEPS}")
    house.register("late", SLEEPS)
    started = house.start("deaf")
    stopping = subprocess.Popen(
        [sys.executable, "-c", STOPS_ALL, str(house.files.engine_socket)], stdout=subprocess.PIPE
    )
    house.until(lambda: house.entry("deaf")["state"] == "stopping", "the stop has begun")

    refused = house.refusal("POST", "/v1/agents/late/start", {"env": {}})
    os.kill(started["pid"], signal.SIGKILL)
    answer, _ = stopping.communicate(timeout=40)

    assert (4, "ending") == (refused.exit_code, refused.code)
    assert [] == json.loads(answer)["notices"]
    house.until(lambda: not house.processes(), "nothing is left")


STOPS_ALL = """
import json, sys
from pathlib import Path
from kt_client.link import Link
print(json.dumps(Link(Path(sys.argv[1])).ask("POST", "/v1/engine/stop", body={"all": True})))
"""


def test_a_ledger_that_is_replaced_while_in_use_is_written_no_more(house: Any) -> None:
    house.register("bot", SLEEPS)
    moved = {
        path: path.rename(path.with_name(f"moved-{path.name}")) for path in house.root.glob("ledger.db*")
    }

    refused = house.until(lambda: _refused(house), "it is noticed")
    for path, elsewhere in moved.items():
        elsewhere.rename(path)

    assert "was removed or replaced while in use" in str(refused)
    assert "running" == house.until(lambda: _started(house), "it goes on once it is back")["state"]


def _refused(house: Any) -> Any:
    try:
        house.ask("GET", "/v1/agents/bot")
    except KtError as failure:
        return failure
    return None


def _started(house: Any) -> Any:
    try:
        return house.start("bot")
    except KtError:
        return None


def test_a_run_that_the_ledger_does_not_know_is_stopped_with_all_others(own_house: Any) -> None:
    house = own_house
    house.register("bot", SLEEPS)
    started = house.start("bot")
    house.kill_engine()
    for path in house.root.glob("ledger.db*"):
        path.unlink()
    house.boot()

    answer = house.ask("POST", "/v1/engine/stop", {"all": True})

    assert [] == answer["notices"]
    house.until(lambda: house.is_gone(started["pid"]), "it was stopped")

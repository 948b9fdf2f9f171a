"""A recorded number that belongs to somebody else now: a recycled pid, and a machine that was restarted."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.chaos import agents, evidence
from tests.chaos.tally import Tally
from tests.house import House, until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]

SLEEPER = agents.BEGIN + "\ntime.sleep(600)\n"
INSIDE = Path(__file__).with_name("recycled_pids.py")


@pytest.mark.skipif(
    0
    != subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True).returncode,
    reason="a pid namespace of one's own needs root or user namespaces",
)
def test_strangers_on_recycled_pids_of_agent_and_keeper_are_untouched(tmp_path: Path, tally: Tally) -> None:
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, str(INSIDE)]
    done = subprocess.run([*command, str(tmp_path / "state")], capture_output=True, text=True, timeout=100)

    assert 0 == done.returncode, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    tally.agents = 1
    tally.runs, tally.spawned = told["runs"], told["spawned"]
    tally.wrong_signals = told["wrong_signals"]
    tally.figures["recycled"] = f"agent {told['agent_pid']}, keeper {told['keeper_pid']}"
    assert "failed" == told["state"]
    assert "lost" in told["detail"]


@pytest.mark.parametrize("autostart", ["true", "false"] if "KT_CHAOS" in os.environ else ["true"])
def test_after_a_reboot_nothing_is_signalled_and_autostart_is_honoured(
    house: House, tally: Tally, bystander: Any, autostart: str
) -> None:
    house.register("bot", SLEEPER)
    house.set("bot", "autostart", autostart)
    first = house.start("bot")
    house.kill(first["pid"])  # a failure before, for the history
    house.wait_for_state("bot", "failed", "starting")
    run_id = house.wait_for_state("bot", "running")["run_id"]
    tally.agents = 1
    house.stop_engine()
    record = house.run_record(run_id)
    for name in ("keeper_pid", "agent_pid"):
        house.kill(record[name])
    as_if_rebooted(house, run_id, record, bystander.pid)

    house.boot()

    wanted = "running" if autostart == "true" else "failed"
    entry = until(
        lambda: (
            (found := house.entry("bot"))["state"] == wanted
            and (found["run_id"] != run_id) == (autostart == "true")
            and found
        ),
        f"it is {wanted}",
    )
    assert (2 if autostart == "true" else 1) == entry["restart_count"]
    if autostart == "false":
        assert "autostart is off" in entry["restart"]["parked"]
    tally.survivors += house.stop_everything()
    evidence.count_spawns(house, "bot", tally)


def as_if_rebooted(house: House, run_id: str, record: dict[str, Any], stranger: int) -> None:
    """Have the record name another boot, and a stranger, with his own start ticks, where agent and keeper were."""
    ticks = int(Path(f"/proc/{stranger}/stat").read_text().rpartition(")")[2].split()[19])
    told = {"boot_id": "another boot"}
    for who in ("agent", "keeper"):
        told |= {f"{who}_pid": stranger, f"{who}_start_ticks": ticks}
    house.files.run(run_id).record.write_text(json.dumps(record | told))
    assert os.getpid() != stranger

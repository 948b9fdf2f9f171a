"""Run as the first process of a pid namespace: kills an agent and its keeper, and gives their numbers to strangers.

Prints what became of everybody as one line of JSON. `/proc/sys/kernel/ns_last_pid` says which number the next process
gets (proc(5)).
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.chaos import agents, evidence
from tests.chaos.conftest import Bystander
from tests.house import House

SLEEPER = agents.BEGIN + "\ntime.sleep(600)\n"
TRIES = 50


def stranger_at(pid: int) -> Bystander:
    """Return a stranger with exactly this number."""
    for _ in range(TRIES):
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        found = Bystander()
        if found.pid == pid:
            return found
        found.end()
    raise AssertionError(f"no process got the number {pid}")


def main() -> None:
    """Do it, and say what came of it."""
    house = House(Path(sys.argv[1])).boot()
    house.register("bot", SLEEPER)
    house.set("bot", "restart.policy", "never")
    run_id = house.start("bot")["run_id"]
    record = house.run_record(run_id)
    house.stop_engine()
    for name in ("keeper_pid", "agent_pid"):
        house.kill(record[name])
        os.waitpid(record[name], 0)  # orphans are the first process's, and a zombie keeps its number
    strangers = [stranger_at(record[name]) for name in ("keeper_pid", "agent_pid")]

    house.boot()
    entry = house.wait_for_state("bot", "failed", "stopped")
    house.stop_everything()
    told = {name: record[name] for name in ("agent_pid", "keeper_pid")}
    told |= {"state": entry["state"], "detail": entry["failed_cause"]["detail"]}
    told |= {"runs": len(evidence.runs(house, "bot")), "spawned": len(evidence.spawns(house, "bot"))}
    told["wrong_signals"] = sum(stranger.end() for stranger in strangers)
    house.end()
    print(json.dumps(told))


if __name__ == "__main__":
    main()

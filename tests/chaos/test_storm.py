"""Engine, gateway and keepers are killed at random moments while agents print, call and are metered."""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.chaos import agents, conftest, evidence
from tests.chaos.tally import Tally
from tests.house import House, until

from kt_cli.demo.provider_process import ProviderProcess
from kt_supervisor.keeper import proctree

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(780 if "KT_CHAOS" in os.environ else 100)]

LONG = conftest.LONG
KILLS = {"engine": 200, "gateway": 100, "keeper": 50} if LONG else {"engine": 2, "gateway": 1, "keeper": 1}
PRINTERS, CALLERS = (8, 2) if LONG else (3, 1)
LONGEST_S = float(os.environ.get("KT_CHAOS_STORM_S", "480"))
"""A slow machine gets fewer kills, and the table says how many, instead of a test without an end."""
REST_S, KILL_WITHIN_BYTES = ("0.15", 10_000) if LONG else ("0.05", 30_000)
"""Long: some 2000 reports a second together, so that what waits to be counted does not grow from kill to kill."""
ROTATES = 1 << 20
"""A cap that makes an agent's segments 128 KiB, so that they are rotated and the oldest deleted."""


class Storm:
    """The agents, and whoever kills around them."""

    def __init__(self, house: House, tally: Tally, chance: random.Random) -> None:
        self.house = house
        self.tally = tally
        self.chance = chance
        self.printers = [f"printer-{n}" for n in range(PRINTERS)]
        self.callers = [f"caller-{n}" for n in range(CALLERS)]
        self.started: dict[str, Any] = {}
        self.bereaved: set[str] = set()
        self.entries: dict[str, Any] = {}
        self.rows: list[Any] = []
        tally.agents = PRINTERS + CALLERS

    def begin(self, provider: ProviderProcess) -> None:
        """Start all agents; each has an exit code of its own."""
        for n, name in enumerate(self.printers):
            words = (str(self.chance.randrange(2**32)), "40", REST_S, str(n))
            self.house.register(name, agents.PRINTER, *words)
            if n % 2:
                self.house.set(name, "logs.cap", str(ROTATES))
        for n, name in enumerate(self.callers):
            self.house.register(name, agents.CALLER, name, "0.02", str(100 + n), observe=True)
            self.house.set(name, "metering.upstream_base_url", f"{provider.url}/v1")
        for name in self.printers + self.callers:
            self.house.set(name, "restart.policy", "never")
            self.started[name] = self.house.start(name)

    # -- killing -----------------------------------------------------------------------------------------------
    def kill_all(self) -> None:
        """Kill as often as is wanted, in an order and at moments that chance decides."""
        order = [kind for kind, count in KILLS.items() for _ in range(count)]
        self.chance.shuffle(order)
        ends_s = time.monotonic() + LONGEST_S
        for kind in order:
            if time.monotonic() > ends_s:
                self.tally.figures["cut short"] = f"after {LONGEST_S:g} s, on this machine"
                return
            self.wait_for_output()
            getattr(self, f"kill_{kind}")()

    def wait_for_output(self) -> None:
        """Return once some agent has printed on, by an amount that chance decides: that is the random moment."""
        name = self.chance.choice(self.printers)
        enough = self.size(name) + self.chance.randrange(KILL_WITHIN_BYTES)
        within_s = 60.0
        until(lambda: self.size(name) > enough, f"{name} prints on", within_s=within_s)

    def size(self, name: str) -> int:
        """Return how much an agent has printed, deleted segments included."""
        folder = self.house.files.run(self.started[name]["run_id"])
        newest = max(int(path.stem.partition("-")[2]) for path in folder.root.glob("out-*.log"))
        return (newest << 24) + folder.segment("out", newest).stat().st_size

    def kill_engine(self) -> None:
        """Kill the engine, now and then before it has adopted anybody; a keeper or a command brings the next."""
        pid = self.pid_of(self.house.files.engine_record)
        if pid is None:
            self.house.wait_for_engine()
            pid = self.house.engine_pid()
        self.house.kill(pid)
        self.tally.engine += 1
        if self.chance.random() < 0.5:
            self.house.spawn()
        until(
            lambda: self.pid_of(self.house.files.engine_record) not in (None, pid), "an engine is there again"
        )
        if self.chance.random() < 0.7:
            self.house.wait_for_engine()

    def kill_gateway(self) -> None:
        """Kill the gateway that serves."""
        record = self.house.files.gateway.record
        pid = until(lambda: self.pid_of(record), f"a gateway serves; {self.house.log()[-2000:]}")
        self.house.kill(pid)
        self.tally.gateway += 1

    def kill_keeper(self) -> None:
        """Kill an agent's keeper, and wait until it has another, since the engine holds what that one needs."""
        name = self.chance.choice(self.printers + self.callers)
        record = self.house.files.run(self.started[name]["run_id"]).record
        pid = until(lambda: self.pid_of(record, "keeper_pid", "keeper_start_ticks"), f"{name} has a keeper")
        # Both dead at once is another recipe: then the pipes may have broken.
        until(lambda: self.house.answers() and self.is_adopted(name), f"{name} is adopted")
        self.house.kill(pid)
        self.bereaved.add(name)
        self.tally.keeper += 1
        until(
            lambda: self.pid_of(record, "keeper_pid", "keeper_start_ticks") not in (None, pid),
            f"{name} has another keeper; {self.house.log()[-2000:]}",
        )

    def is_adopted(self, name: str) -> bool:
        """Whether the engine of this moment holds the agent's spare descriptors, as far as the kernel shows."""
        engine = self.pid_of(self.house.files.engine_record)
        agent = self.started[name]["pid"]
        return engine is not None and agent in held_pidfds(engine)

    @staticmethod
    def pid_of(record: Any, pid: str = "pid", ticks: str = "start_ticks") -> int | None:
        """Return the process that a record names, where exactly that one lives."""
        try:
            facts = json.loads(record.read_bytes())
        except (OSError, ValueError):
            return None
        process = proctree.read(facts[pid])
        lives = process is not None and process.alive() and process.start_ticks == facts[ticks]
        return int(facts[pid]) if lives else None

    # -- the end -----------------------------------------------------------------------------------------------
    def end(self) -> None:
        """Have all agents end by themselves, wait until that is kept, then stop everything."""
        for name in self.started:
            (self.house.files.home(name) / "end").touch()
        if not self.house.answers():
            self.house.boot()
        for name in self.started:
            self.entries[name] = self.house.wait_for_state(name, "stopped", "failed")
        for name in self.callers:
            self.rows += self.house.ask("GET", f"/v1/agents/{name}/exchanges?limit=100000")["exchanges"]
        self.tally.survivors += self.house.stop_everything()
        for name in self.started:
            evidence.count_spawns(self.house, name, self.tally)

    def judge_ends(self) -> None:
        """Compare Runs, starts and exit codes."""
        for n, name in enumerate([*self.printers, *self.callers]):
            entry = self.entries[name]
            wanted = n if name in self.printers else 100 + n - PRINTERS
            assert self.started[name]["run_id"] == entry["run_id"]
            if {"code": wanted, "signal": None} != entry["exit"]:
                detail = entry.get("failed_cause", {}).get("detail", "")
                known = name in self.bereaved and {"code": None, "signal": None} == entry["exit"]
                said = known and detail.startswith("its exit is not known: ")
                self.tally.unknown_exits += said
                self.tally.wrong_exits += not said
                print(name, "ended as", entry["exit"], detail)

    def judge_printed(self) -> None:
        """Compare what was printed, byte by byte where nothing was deleted, and what was counted."""
        for n, name in enumerate(self.printers):
            run_id = self.started[name]["run_id"]
            before = self.tally.lost, self.tally.doubled
            evidence.judge_printer(self.house, name, run_id, self.tally, usage=self.entries[name]["usage"])
            said = evidence.total(self.house, name)
            if before != (self.tally.lost, self.tally.doubled):
                print(name, said, self.entries[name].get("notes"), name in self.bereaved)
            if not n % 2:
                assert (said["bytes"], said["digest"]) == evidence.printed(self.house, run_id), name

    def judge_called(self, provider: ProviderProcess) -> None:
        """Compare the provider's log with the rows of the ledger."""
        called = Counter(call.model for call in provider.calls())
        rows = [row for row in self.rows if row["sent"] != "no"]
        kept = Counter(row["model_asked"] for row in rows)
        self.tally.expected += called.total()
        self.tally.lost += (called - kept).total()
        self.tally.doubled += sum(count - 1 for count in kept.values() if count > 1)
        for row in rows:
            assert row["state"] == "ended", row
            if not called[row["model_asked"]]:
                assert "may_not_have_been_sent" == row["reason"], row
        for name in self.callers:
            assert evidence.total(self.house, name)["answered"] > 0


def held_pidfds(pid: int) -> Iterator[int]:
    """Yield the processes that a process holds pidfds of (proc_pid_fdinfo(5))."""
    try:
        for entry in os.scandir(f"/proc/{pid}/fdinfo"):
            with open(entry.path) as facts:
                yield from (int(line.split()[1]) for line in facts if line.startswith("Pid:"))
    except OSError:
        return


def test_a_storm_of_kills_loses_and_doubles_nothing(
    house: House, provider: ProviderProcess, tally: Tally, chance: random.Random
) -> None:
    storm = Storm(house, tally, chance)
    storm.begin(provider)

    storm.kill_all()
    storm.end()

    storm.judge_ends()
    storm.judge_printed()
    storm.judge_called(provider)

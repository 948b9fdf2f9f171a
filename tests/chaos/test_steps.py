"""The engine dies at named moments of a verb, seen from outside; the next one finishes it or undoes it."""

import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.chaos import agents, conftest, evidence
from tests.chaos.tally import Tally
from tests.house import House, until

from kt_client.errors import EngineAway, KtError
from kt_supervisor.keeper import proctree

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(400)]

LONG = conftest.LONG
ROUNDS, FEW = 2, 3
LONGEST_DELAY_S = 0.04
POLITE = (
    agents.BEGIN
    + """
import signal

def bye(*_):
    open("asked", "w").close()
    time.sleep(0.15)
    sys.exit(0)

signal.signal(signal.SIGTERM, bye)
print("here", flush=True)
while True:
    time.sleep(0.01)
"""
)


class Scene:
    """One agent, the verb that is done to it, and where its Runs are."""

    def __init__(self, house: House, name: str) -> None:
        self.house = house
        self.name = name
        self.before = set(self.runs())

    def runs(self) -> list[str]:
        folder = self.house.files.runs
        return sorted(run.name for run in folder.iterdir()) if folder.is_dir() else []

    def new(self) -> Path | None:
        """Return the folder of the Run that the verb begins."""
        fresh = set(self.runs()) - self.before
        return self.house.files.run(fresh.pop()).root if fresh else None

    def has_new(self, file: str) -> bool:
        return (run := self.new()) is not None and (run / file).exists()

    def old(self) -> Path:
        return self.house.files.run(max(self.before)).root

    def begin(self, verb: str) -> threading.Thread:
        """Ask for the verb without waiting for the answer, which a killed engine does not give."""

        def ask() -> None:
            try:
                body = {"env": {"PATH": os.environ["PATH"]}, "timeout_s": 5}
                self.house.ask("POST", f"/v1/agents/{self.name}/{verb}", body)
            except (EngineAway, KtError, OSError):
                pass

        thread = threading.Thread(target=ask)
        thread.start()
        return thread

    def agent(self) -> proctree.Process | None:
        """Return the agent's process where it lives."""
        entry = self.house.entry(self.name)
        process = proctree.read(entry["pid"]) if "pid" in entry else None
        return process if process is not None and process.alive() else None


def frozen(scene: Scene) -> bool:
    return evidence.stands_still(scene.house, scene.old().name)


MOMENTS: dict[str, tuple[str, Callable[[Scene], bool], tuple[str, ...]]] = {
    # moment -> the verb, what is seen, the states it may end in
    "start: asked": ("start", lambda _: True, ("stopped", "running", "failed")),
    "start: intended": ("start", lambda s: s.new() is not None, ("running", "failed")),
    "start: claimed": ("start", lambda s: s.has_new("owner.json"), ("running", "failed")),
    "start: keeper": ("start", lambda s: s.has_new("keeper.sock"), ("running",)),
    "start: spawned": ("start", lambda s: s.has_new("run.json"), ("running",)),
    "start: first words": ("start", lambda s: s.has_new("out-000001.log"), ("running",)),
    "stop: asked": ("stop", lambda _: True, ("stopped", "running")),
    "stop: agent told": ("stop", lambda s: (s.house.files.home(s.name) / "asked").exists(), ("stopped",)),
    "stop: exit kept": ("stop", lambda s: (s.old() / "exit.json").exists(), ("stopped",)),
    "pause: asked": ("pause", lambda _: True, ("paused", "running")),
    "pause: frozen": ("pause", frozen, ("paused",)),
    "resume: asked": ("resume", lambda _: True, ("paused", "running")),
    "resume: thawed": ("resume", lambda s: not frozen(s), ("running",)),
    "restart: agent told": (
        "restart",
        lambda s: (s.house.files.home(s.name) / "asked").exists(),
        ("stopped", "running"),
    ),
    "restart: intended": ("restart", lambda s: s.new() is not None, ("running", "failed")),
    "restart: spawned": ("restart", lambda s: s.has_new("run.json"), ("running",)),
}
PREPARED = {
    "start": (),
    "stop": ("start",),
    "pause": ("start",),
    "resume": ("start", "pause"),
    "restart": ("start",),
}


@pytest.mark.chaos
@pytest.mark.long
def test_an_engine_that_dies_at_any_step_is_continued(
    house: House, tally: Tally, chance: random.Random
) -> None:
    house.register("keeps-one-keeper", "import time\ntime.sleep(600)")
    house.start(
        "keeps-one-keeper"
    )  # so that some keeper brings the engine back whatever becomes of the other agent
    house.register("bot", POLITE)
    house.set("bot", "restart.policy", "never")
    house.start("bot")
    house.stop("bot")
    tally.agents = 2

    for moment in list(MOMENTS) * ROUNDS if LONG else chance.sample(list(MOMENTS), FEW):
        once(house, moment, tally, delay_s=chance.random() * LONGEST_DELAY_S * chance.choice((0, 1)))

    tally.survivors += house.stop_everything()
    evidence.count_spawns(house, "bot", tally)
    tally.figures["Runs that never began"] = str(len(evidence.runs(house, "bot")) - tally.runs)


def once(house: House, moment: str, tally: Tally, *, delay_s: float) -> None:
    """Do the verb, kill the engine at the moment, and look at what the next one makes of it."""
    verb, seen, allowed = MOMENTS[moment]
    (house.files.home("bot") / "asked").unlink(missing_ok=True)
    for before in PREPARED[verb]:
        house.ask("POST", f"/v1/agents/bot/{before}", {"env": {"PATH": os.environ["PATH"]}})
    (house.files.home("bot") / "asked").unlink(missing_ok=True)
    scene = Scene(house, "bot")
    engine = house.engine_pid()

    asking = scene.begin(verb)
    spin(lambda: seen(scene), moment, more_s=delay_s)
    house.kill(engine)
    tally.engine += 1
    if not LONG:
        house.spawn()  # sooner than the keeper would
    asking.join()
    house.wait_for_engine()

    def settled() -> Any:
        entry = house.entry("bot")
        return entry if entry["state"] in allowed and "observed" not in entry else None

    entry = until(
        settled,
        f"{moment}, {delay_s * 1000:.0f} ms: the agent is {' or '.join(allowed)}: {house.log()[-1500:]}",
    )
    # What was done, or undone, is so in the kernel, too.
    if entry["state"] in ("running", "paused"):
        still = entry["state"] == "paused"
        run_id = entry["run_id"]
        until(lambda: evidence.stands_still(house, run_id) == still, f"{moment}: it is {entry['state']}")
    else:
        assert scene.agent() is None
    if entry["state"] in ("running", "paused"):
        house.stop("bot")


def spin(claim: Callable[[], bool], what: str, *, more_s: float) -> None:
    """Return as soon as something is so, and a little later; looks much more often than `until`."""
    ends_s = time.monotonic() + 20
    while not claim():
        assert time.monotonic() < ends_s, what
    threading.Event().wait(more_s)

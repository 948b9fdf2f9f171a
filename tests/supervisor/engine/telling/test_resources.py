import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kt_ledger import process_identity
from kt_supervisor.engine.telling.resources import Roots, Sampler
from kt_supervisor.keeper import proctree

TREE = """
import subprocess, sys, time
held = [open('/dev/null') for _ in range(20)]
ballast = bytearray(40 << 20)
child = subprocess.Popen([sys.executable, '-c', 'import time; print(1, flush=True); time.sleep(600)'],
                         start_new_session=True, stdout=subprocess.PIPE)
child.stdout.readline()
print('up', flush=True)
time.sleep(600)
"""
BURNS = """
import os, time
print('up', flush=True)
while True:
    if not (pid := os.fork()):
        end = time.process_time() + 0.05
        while time.process_time() < end: pass
        os._exit(0)
    os.waitpid(pid, 0)
"""


def _open_here() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


class Family:
    """A process and what it starts, in a session of its own."""

    def __init__(self, code: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True
        )
        assert self.process.stdout is not None
        assert b"up\n" == self.process.stdout.readline()

    def roots(self, **other: Any) -> Roots:
        pid = self.process.pid
        facts = {
            "run_id": "r",
            "boot_id": process_identity.boot_id(),
            "keeper": (None, None),
            "agent": (pid, proctree.start_ticks(pid)),
        }
        return Roots(**(facts | other))

    def end(self) -> None:
        for process in proctree.descendants(self.process.pid):
            proctree.send(process, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def tree() -> Iterator[Family]:
    family = Family(TREE)
    yield family
    family.end()


@pytest.fixture
def burner() -> Iterator[Family]:
    family = Family(BURNS)
    yield family
    family.end()


def test_the_whole_tree_counts_also_who_left_the_session(tree: Family) -> None:
    used = Sampler().sample([tree.roots()], with_pss=True)["r"]

    assert 2 == used.processes
    assert used.memory_bytes is not None
    assert used.memory_bytes > 40 << 20
    assert used.pss_bytes is not None
    assert used.memory_bytes > used.pss_bytes > 40 << 20
    assert used.descriptors is not None
    assert used.descriptors >= 26
    assert {} == used.unknown


def test_pss_is_looked_at_only_where_it_is_asked_for(tree: Family) -> None:
    assert Sampler().sample([tree.roots()])["r"].pss_bytes is None


def test_the_processor_time_of_children_that_ended_counts(burner: Family) -> None:
    sampler = Sampler()
    sampler.sample([burner.roots()])
    first_s = time.monotonic()

    while (used := sampler.sample([burner.roots()])["r"]).cpu_window_s is None or used.cpu_window_s < 0.5:
        assert time.monotonic() < first_s + 20

    assert used.cpu_percent is not None
    assert 5 < used.cpu_percent <= 110  # a loaded machine gives it less than a core


def test_a_tree_is_found_below_its_keeper_when_the_agent_itself_is_gone(tree: Family) -> None:
    us = (tree.process.pid, proctree.start_ticks(tree.process.pid))

    used = Sampler().sample([tree.roots(keeper=us, agent=(None, None))])["r"]

    assert 1 == used.processes


def test_a_process_that_only_has_the_number_is_not_counted(tree: Family) -> None:
    stranger = (tree.process.pid, proctree.start_ticks(tree.process.pid) + 1)

    used = Sampler().sample([tree.roots(agent=stranger)])["r"]

    assert (None, None, None, None) == (used.processes, used.cpu_percent, used.memory_bytes, used.descriptors)
    assert {"processes", "cpu", "memory", "descriptors"} == set(used.unknown)
    assert "identified" in used.unknown["memory"]


def test_numbers_of_an_earlier_boot_are_nobodys(tree: Family) -> None:
    used = Sampler().sample([tree.roots(boot_id="another")])["r"]

    assert used.processes is None
    assert "restarted" in used.unknown["processes"]


def test_a_tree_that_ended_is_unknown_and_not_zero(tree: Family) -> None:
    roots = tree.roots()
    tree.end()

    assert Sampler().sample([roots])["r"].memory_bytes is None


def test_a_second_look_at_once_gives_the_same_processor_figure(tree: Family) -> None:
    sampler = Sampler()

    first, second = (sampler.sample([tree.roots()])["r"] for _ in range(2))

    assert (first.cpu_percent, first.cpu_window_s) == (second.cpu_percent, second.cpu_window_s)


def test_runs_that_are_over_are_forgotten(tree: Family) -> None:
    sampler = Sampler()
    sampler.sample([tree.roots()])

    sampler.forget_all_but(set())

    assert ({}, {}) == (sampler._anchors, sampler._last)


def test_looking_at_fifty_agents_leaves_no_descriptor_open(tree: Family) -> None:
    sampler, many = Sampler(), [tree.roots(run_id=str(number)) for number in range(50)]
    before = _open_here()

    found = sampler.sample(many)

    assert 50 == len(found)
    assert before == _open_here()


def test_list_and_show_tell_what_an_agent_that_runs_uses(house: Any) -> None:
    house.register("bot", "import time\ntime.sleep(600)")
    asleep = house.entry("bot")
    house.start("bot")

    [listed] = house.ask("GET", "/v1/agents")["instances"]
    shown = house.entry("bot")
    house.stop("bot")

    assert "resources" not in asleep
    assert (1, 1) == (listed["resources"]["processes"], shown["resources"]["processes"])
    assert listed["resources"]["pss_bytes"] is None
    assert shown["resources"]["memory_bytes"] > shown["resources"]["pss_bytes"] > 0
    assert "resources" not in house.entry("bot")

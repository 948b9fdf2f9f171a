"""Trees made at random from everything a process can do to survive a stop; none does."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.supervisor.keeper import conftest

from kt_supervisor.keeper import proctree

TREES = 200 if "KT_CHAOS" in os.environ else 3

Start = Callable[..., conftest.Run]

# One node of a tree: each letter is a thing it does, in order; children are nodes in brackets.
#   i ignores TERM and HUP (nohup)    s leaves the session      g leaves the group     d forks away from its parent
#   c closes every descriptor         t stops itself            f forks for ever, one process at a time
NODE = """
import os, signal, sys, time
def node(text):
    depth, acts, children = 0, "", []
    for letter in text:
        if letter == "]": depth -= 1
        if depth: children[-1] += letter
        elif letter == "[": children.append("")
        elif letter != "]": acts += letter
        if letter == "[": depth += 1
    for child in children:
        if not os.fork():
            node(child)
    live(acts)
def live(acts):
    for act in acts:
        if act == "i":
            signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGHUP, signal.SIG_IGN)
        elif act == "s":
            try: os.setsid()
            except OSError: pass
        elif act == "g":
            try: os.setpgrp()
            except OSError: pass
        elif act == "d":
            if os.fork(): os._exit(0)
    open(f"{sys.argv[1]}/{os.getpid()}", "w").close()
    end = time.monotonic() + 60
    while "f" in acts and time.monotonic() < end:
        if os.fork(): os._exit(0)
    if "c" in acts: os.closerange(0, 100)
    if "t" in acts: os.kill(os.getpid(), signal.SIGSTOP)
    while True: time.sleep(1000)
node(sys.argv[2])
"""


def tree(chance: random.Random, depth: int = 0) -> str:
    """Return a node; at most four processes wide, three deep, and at most one fork loop a node."""
    acts = "".join(act for act in "isgdct" if chance.random() < 0.3)
    if not depth:
        acts = acts.replace("d", "").replace("t", "")  # the agent itself stays, or its end is the Run's
    elif chance.random() < 0.1:
        acts += "f"
    width = chance.randrange(3 - depth) + (not depth)
    return acts + "".join(f"[{tree(chance, depth + 1)}]" for _ in range(width))


def size(text: str) -> int:
    return 1 + text.count("[")


def run_one(start: Start, folder: Path, seed: int, **fields: object) -> None:
    chance = random.Random(seed)
    text = tree(chance)
    pause, timeout_s = chance.random() < 0.4, chance.choice([0, 0.05, 0.3])
    print(f"seed {seed}: {text!r}, {timeout_s} s{', paused' if pause else ''}")
    nodes = folder / str(seed)
    nodes.mkdir()
    run = start([*conftest.python(NODE), str(nodes), text], run_id=f"run-{seed}", **fields)
    # Some trees end by themselves: a group that becomes orphaned with a stopped member gets SIGHUP (setpgid(2)).
    conftest.until(lambda: len(list(nodes.iterdir())) >= size(text) or run.files.exit.exists())
    engine = run.engine()
    if pause and (engine.ask(op="pause")["ok"] or engine.ask(op="status")["phase"] == "running"):
        below = proctree.descendants(run.process.pid)
        # In the middle of a disk write (D) it stops before it comes back to its own code.
        still = all(process.stopped() or process.state == b"D" for process in below) or fields
        assert still or engine.ask(op="status")["phase"] != "running", [(p.pid, p.state) for p in below]

    before_s = time.monotonic()
    engine.ask(op="stop", timeout_s=timeout_s)
    record = run.ended()  # by a new connection: the event of a Run that ended by itself may have come before

    assert record["survivors"] == []
    assert time.monotonic() - before_s < 25
    assert not proctree.descendants(run.process.pid)
    assert not [path.name for path in nodes.iterdir() if ours(int(path.name), nodes)]
    assert run.release() == 0


def ours(pid: int, nodes: Path) -> bool:
    try:
        return str(nodes).encode() in Path(f"/proc/{pid}/cmdline").read_bytes() and conftest.alive(pid)
    except OSError:
        return False


def seeds(count: int) -> list[int]:
    chosen = os.environ.get("KT_TEST_SEED")
    first = int(chosen) if chosen else random.randrange(1 << 30)
    return list(range(first, first + (1 if chosen else count)))


@pytest.mark.chaos
def test_no_tree_survives_a_stop(start: Start, tmp_path: Path) -> None:
    for seed in seeds(TREES):
        run_one(start, tmp_path, seed)


@pytest.mark.chaos
def test_no_tree_in_a_cgroup_survives_a_stop(cgroup_parent: Path, start: Start, tmp_path: Path) -> None:
    for seed in seeds(TREES // 2):
        run_one(start, tmp_path, seed, cgroup_parent=str(cgroup_parent))


def test_a_tree_made_of_everything_ends(start: Start, tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    nodes.mkdir()
    text = "i[isdc[t]][gdt][sf][dsdc]"
    run = start([*conftest.python(NODE), str(nodes), text])
    conftest.until(lambda: len(list(nodes.iterdir())) >= size(text))
    engine = run.engine()

    engine.ask(op="stop", timeout_s=0.2)
    record = run.ended(engine)

    assert (record["signal"], record["forced"], record["survivors"]) == (signal.SIGKILL, True, [])

"""How fast and how cheap: figures for the table, with limits wide enough for a busy machine."""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.chaos import agents, conftest, evidence
from tests.chaos.tally import Tally
from tests.chaos.test_storm import held_pidfds
from tests.house import House, until

from kt_cli.demo.provider_process import ProviderProcess

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(400)]

LONG = conftest.LONG
SLEEPER = agents.BEGIN + "\ntime.sleep(600)\n"
READINESS_S = 0.3
STARTS = 2000 if LONG else 30
AT_ONCE = 10
STARTS_WITHIN_S = 240.0
"""As many of them as the machine does in this time."""
ADOPTED = 50 if LONG else 6
CRASHES = 30 if LONG else 5
IDLE, IDLE_S = 25, 20.0


def start_all(house: House, names: list[str], **kinds: bool) -> None:
    """Register and start agents, a few at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda name: house.register(name, SLEEPER, **kinds), names))
        list(pool.map(house.start, names))


def spread(values: list[float]) -> str:
    """Return times as they are told, in milliseconds."""
    ordered = sorted(value * 1000 for value in values)
    return (
        f"median {statistics.median(ordered):.0f} ms, 90 % {ordered[int(len(ordered) * 0.9)]:.0f} ms, "
        f"longest {ordered[-1]:.0f} ms of {len(ordered)}"
    )


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@pytest.mark.chaos
@pytest.mark.long
def test_descriptors_stay_flat_over_starts_and_stops(house: House, tally: Tally) -> None:
    names = [f"bot-{n}" for n in range(AT_ONCE)]
    for name in names:
        house.register(name, SLEEPER)
    tally.agents = len(names)
    engine = house.engine_pid()
    ends_s = time.monotonic() + float(os.environ.get("KT_CHAOS_STARTS_S", STARTS_WITHIN_S))

    def turn(times: int) -> Callable[[str], None]:
        def work(name: str) -> None:
            for _ in range(times):
                if time.monotonic() < ends_s:
                    house.start(name)
                    house.stop(name)

        return work

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(turn(1), names))
        before = descriptors(engine)
        list(pool.map(turn(STARTS // AT_ONCE), names))

    until(lambda: descriptors(engine) <= before + 2, f"{before} descriptors again, not {descriptors(engine)}")
    count = sum(len(evidence.spawns(house, name)) for name in names)
    tally.figures["descriptors of the engine"] = (
        f"{descriptors(engine)} after {count} starts, {before} before"
    )
    assert engine == house.engine_pid()
    tally.survivors += house.stop_everything()
    for name in names:
        evidence.count_spawns(house, name, tally)


@pytest.mark.chaos
@pytest.mark.long
def test_many_agents_are_adopted_soon(house: House, tally: Tally) -> None:
    names = [f"bot-{n}" for n in range(ADOPTED)]
    start_all(house, names)
    tally.agents = ADOPTED
    pids = {house.entry(name)["pid"] for name in names}

    killed_s = time.monotonic()
    house.kill_engine()
    tally.engine += 1
    engine = house.spawn().pid
    until(house.answers, "the engine answers")
    answered_s = time.monotonic()
    until(lambda: pids <= set(held_pidfds(engine)), "all agents are adopted")
    adopted_s = time.monotonic()

    tally.figures[f"{ADOPTED} agents adopted"] = (
        f"{adopted_s - killed_s:.2f} s after the kill, {adopted_s - answered_s:.2f} s after the engine answered"
    )
    assert {"running"} == {house.entry(name)["state"] for name in names}
    assert adopted_s - killed_s < 20
    tally.survivors += house.stop_everything()
    for name in names:
        evidence.count_spawns(house, name, tally)


def test_a_crash_is_seen_soon_and_a_start_takes_little_more_than_readiness(
    house: House, tally: Tally
) -> None:
    house.register("bot", SLEEPER)
    house.set("bot", "restart.policy", "never")
    tally.agents = 1
    starts, kills = [], []

    for _ in range(CRASHES):
        begun_s = time.monotonic()
        pid = house.start("bot")["pid"]
        starts.append(time.monotonic() - begun_s - READINESS_S)
        kills.append(time.time())
        house.kill(pid)
        house.wait_for_state("bot", "failed")
    tally.survivors += house.stop_everything()

    seen = evidence.query(house, "SELECT at_ns FROM transitions WHERE new_state = 'failed' ORDER BY seq")
    late = [at_ns / 1e9 - killed for (at_ns,), killed in zip(seen, kills, strict=True)]
    evidence.count_spawns(house, "bot", tally)
    tally.figures["crash to `failed`"] = spread(late)
    tally.figures["start to `running`, beyond readiness"] = spread(starts)
    assert statistics.median(late) < 1
    assert statistics.median(starts) < 2


@pytest.mark.long
def test_idle_agents_cost_next_to_nothing(house: House, provider: ProviderProcess, tally: Tally) -> None:
    plain, observed = [f"bot-{n}" for n in range(IDLE - 5)], [f"seen-{n}" for n in range(5)]
    for name in observed:
        house.register(name, SLEEPER, observe=True)
        house.set(name, "metering.upstream_base_url", f"{provider.url}/v1")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(house.start, observed))
    start_all(house, plain)
    tally.agents = IDLE
    facts = house.ask("GET", "/v1/engine")
    pids = {"engine": facts["pid"], "gateway": facts["gateway"]["pid"]}
    quiet = list(passing(5.0))

    before = {who: cpu_s(pid) for who, pid in pids.items()}
    begun_s = time.monotonic()
    quiet += passing(IDLE_S)
    took_s = time.monotonic() - begun_s
    used = {who: 100 * (cpu_s(pid) - before[who]) / took_s for who, pid in pids.items()}

    tally.figures[f"{IDLE} idle agents"] = (
        ", ".join(f"{who} {used[who]:.2f} %" for who in pids) + " of a core"
    )
    assert sum(used.values()) < 2.0
    tally.survivors += house.stop_everything()
    for name in (*plain, *observed):
        evidence.count_spawns(house, name, tally)


def passing(seconds: float) -> Iterator[float]:
    """Let time pass: what is measured is that nothing happens."""
    ends_s = time.monotonic() + seconds
    yield until(lambda: time.monotonic() >= ends_s, "time passes", within_s=seconds + 5)


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process (proc_pid_schedstat, in nanoseconds: ticks are too coarse)."""
    return sum(
        int((task / "schedstat").read_text().split()[0]) / 1e9 for task in Path(f"/proc/{pid}/task").iterdir()
    )

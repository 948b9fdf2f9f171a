"""A small disk fills up at each step of the work: what cannot be kept waits or is refused in words, nothing is lost."""

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import small_disk
from tests.chaos import agents, conftest, evidence
from tests.chaos.tally import Tally
from tests.house import House, until

from kt_cli.demo.provider_process import ProviderProcess
from kt_client.errors import KtError

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(200)]

LONG = conftest.LONG
MB = 1 << 20
FILLINGS = 8 if LONG else 1


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 96 MiB that nobody else uses: above the keeper's floor of 64 MiB while it is empty."""
    with small_disk.mounted(tmp_path / "disk", "96m") as folder:
        yield folder


@pytest.fixture
def small(disk: Path, tally: Tally, bystander: Any) -> Iterator[House]:
    """A state directory on that disk."""
    house = House(disk / "state").boot()
    yield house
    (disk / "ballast").unlink(missing_ok=True)
    tally.survivors += house.stop_everything()
    house.end()


def fill(disk: Path, *, but_bytes: int) -> None:
    """Leave no more than `but_bytes` of the disk."""
    with (disk / "ballast").open("ab") as ballast:
        while (free := free_bytes(disk)) > but_bytes:
            try:
                ballast.write(bytes(min(free - but_bytes, MB)))
                ballast.flush()
            except OSError:
                return


def free_bytes(disk: Path) -> int:
    """Return what may still be written."""
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize


@pytest.mark.chaos
@pytest.mark.long
def test_a_disk_that_fills_up_again_and_again_loses_nothing(
    small: House, disk: Path, provider: ProviderProcess, tally: Tally, chance: random.Random
) -> None:
    small.register("printer", agents.PRINTER, str(chance.randrange(2**32)), "40", "0.02", "3")
    small.register("caller", agents.CALLER, "caller", "0.02", "4", observe=True)
    small.set("caller", "metering.upstream_base_url", f"{provider.url}/v1")
    small.register("late", "import time\ntime.sleep(600)")
    tally.agents = 3
    started = {}
    for name in ("printer", "caller"):
        small.set(name, "restart.policy", "never")
        started[name] = small.start(name)["run_id"]

    refused = []
    for at in range(FILLINGS):
        # Full to the last byte, or with so little room that it runs out in the middle of something.
        fill(disk, but_bytes=0 if not at % 2 else chance.randrange(200_000))
        until(lambda: waits(started["printer"], small), "the printer waits for room")
        refused.append(refusal(small))
        if at % 3 == 2:
            small.kill(small.engine_pid())
            tally.engine += 1
        (disk / "ballast").unlink()
        before = size(started["printer"], small)
        until(lambda before=before: size(started["printer"], small) > before, "it goes on")
        small.wait_for_engine()
    for name in started:
        (small.files.home(name) / "end").touch()
    entries = {name: small.wait_for_state(name, "failed") for name in started}
    rows = small.ask("GET", "/v1/agents/caller/exchanges?limit=100000")["exchanges"]
    tally.survivors += small.stop_everything()

    for name, code in (("printer", 3), ("caller", 4)):
        tally.wrong_exits += entries[name]["exit"] != {"code": code, "signal": None}
        evidence.count_spawns(small, name, tally)
    evidence.judge_printer(small, "printer", started["printer"], tally, usage=entries["printer"]["usage"])
    said = evidence.total(small, "printer")
    assert (said["bytes"], said["digest"]) == evidence.printed(small, started["printer"])
    called = Counter(call.model for call in provider.calls())
    kept = Counter(row["model_asked"] for row in rows if row["sent"] != "no")
    tally.expected += called.total()
    tally.lost += (called - kept).total()
    tally.doubled += sum(count - 1 for count in kept.values() if count > 1)
    assert [("ok",)] == evidence.query(small, "PRAGMA integrity_check")
    assert any(refused), "a full disk refused nothing"
    tally.figures["fillings"] = f"{FILLINGS}, of which {sum(map(bool, refused))} refused a start in words"


def refusal(house: House) -> str:
    """Try to start another agent, as somebody might just then; return in which words that was refused, if it was."""
    try:
        house.start("late")
        house.stop("late", timeout_s=1)
    except KtError as refused:
        assert refused.exit_code in (1, 4), refused
        return str(refused)
    return ""


def size(run_id: str, house: House) -> int:
    """Return how much of a Run's output is on disk."""
    return sum(path.stat().st_size for path in house.files.run(run_id).root.glob("out-*.log"))


def waits(run_id: str, house: House) -> bool:
    """Tell whether the agent is frozen, or waits in a write for its keeper."""
    pid = house.run_record(run_id)["agent_pid"]
    return evidence.stands_still(house, run_id) or "pipe_write" in Path(f"/proc/{pid}/wchan").read_text()

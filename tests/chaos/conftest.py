"""State directories, a bystander and a row of the table for recipes that kill things."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos.tally import PROPERTY, Tally
from tests.house import House

from kt_cli.demo import place
from kt_cli.demo.provider_process import ProviderProcess

LONG = "KT_CHAOS" in os.environ

BYSTANDER = """
import signal, sys
everything = set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
signal.pthread_sigmask(signal.SIG_BLOCK, everything)
print("here", flush=True)
while True:
    print(int(signal.sigwait(everything)), flush=True)
"""


class Bystander:
    """A process of the same user that is nobody's agent, and that notes every signal it gets."""

    def __init__(self) -> None:
        command = [sys.executable, "-u", "-c", BYSTANDER]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        assert self._process.stdout is not None
        assert b"here\n" == self._process.stdout.readline()
        self.pid = self._process.pid

    def end(self) -> int:
        """End it; return how many signals it had got."""
        killed = self._process.poll() is not None
        self._process.kill()
        said, _ = self._process.communicate()
        return len(said.split()) + killed


@pytest.fixture
def seed() -> int:
    """A number that everything random in the test follows from; `KT_SEED` repeats one."""
    chosen = os.environ.get("KT_SEED")
    found = int(chosen) if chosen else random.SystemRandom().randrange(2**32)
    print(f"KT_SEED={found}")
    return found


@pytest.fixture
def chance(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.fixture
def tally(request: pytest.FixtureRequest, seed: int) -> Iterator[Tally]:
    """The test's row of the table; what must be nothing in it is looked at when the test is over."""
    kept = Tally(recipe=request.node.name.removeprefix("test_"), seed=seed)
    yield kept
    request.node.user_properties.append((PROPERTY, kept.to_json()))
    assert {} == kept.faults()


@pytest.fixture
def bystander(tally: Tally) -> Iterator[Bystander]:
    """A process that must never get a signal."""
    watched = Bystander()
    yield watched
    tally.wrong_signals += watched.end()


@pytest.fixture
def house(tmp_path: Path, tally: Tally, bystander: Bystander) -> Iterator[House]:
    """A state directory whose engine answers; in the end everything is stopped, and what is left is counted."""
    made = House(tmp_path / "state").boot()
    yield made
    tally.survivors += made.stop_everything()
    made.end()


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[ProviderProcess]:
    """A provider in a process of its own; its log is the judge."""
    with ProviderProcess(place.fixtures(), tmp_path / "provider.ndjson") as running:
        yield running

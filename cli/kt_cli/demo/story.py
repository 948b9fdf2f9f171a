"""The demo from begin to end: a provider, an engine, three agents, one ledger, one judgement.

Laws: whatever happens, everything that was started is ended, and a state directory of our own making is removed;
what it claims, it has computed: the provider's log against the ledger, call by call.
"""

import contextlib
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kt_cli.demo import judge, place, view
from kt_cli.demo.fleet import ENDED, Fleet, members
from kt_cli.demo.provider_process import ProviderProcess
from kt_client.errors import KtError
from kt_ledger import exit_codes
from kt_ledger.layout import StateLayout

LIMIT_S = 60.0
"""How long the agents may work; they need about five seconds."""
LOOK_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the demo found: the fleet's own document, the calls, and the judgement over them."""

    state_dir: Path
    kept: bool
    fleet: dict[str, Any]
    verdict: judge.Verdict
    findings: dict[str, dict[str, int]]  # by agent: how many findings of each kind

    def to_json(self) -> dict[str, Any]:
        """Return the one document of `kt demo --json`."""
        return {
            "schema_version": 1,
            "state_dir": str(self.state_dir),
            "kept": self.kept,
            "fleet": self.fleet,
            "findings": self.findings,
            "provider": self.verdict.to_json(),
        }


def play(*, keep_in: Path | None, as_json: bool) -> Outcome:
    """Run the demo and return what it found.

    Args:
        keep_in: an absolute path of a new or empty directory that stays; None for one that is removed.
        as_json: show nothing on the way.

    Raises:
        KtError: exit 1, where an agent does not end in time or anything does not start.
    """
    with _place(keep_in) as (state_dir, scratch), _terminable():
        fleet = Fleet(StateLayout(state_dir))
        try:
            with ProviderProcess(place.fixtures(), scratch / "provider.log") as provider:
                return _act(fleet, provider, scratch, Place(state_dir, keep_in is not None), as_json=as_json)
        finally:
            _end(fleet)


@dataclass(frozen=True, slots=True)
class Place:
    """A state directory and whether it stays."""

    state_dir: Path
    kept: bool


def _act(fleet: Fleet, provider: ProviderProcess, scratch: Path, where: Place, *, as_json: bool) -> Outcome:
    cast = members(scratch)
    shows = {member.name: member.shows for member in cast}
    fleet.begin()
    for member in cast:
        fleet.register(member, upstream=f"{provider.url}/v1")
    with view.choose(shows, as_json=as_json) as shown:
        for member in cast:
            fleet.start(member.name)
        _watch(fleet, shown)
        for member in cast:
            fleet.stop(member.name)
        shown.update(fleet.entries())
    provider.stop()  # so that its log is complete before it judges
    document = fleet.fleet()
    rows = [row for member in cast if member.upstream for row in fleet.exchanges(member.name)]
    findings = {member.name: fleet.findings(member.name) for member in cast}
    return Outcome(where.state_dir, where.kept, document, judge.judge(provider.calls(), rows), findings)


def _watch(fleet: Fleet, shown: view.View) -> None:
    end = time.monotonic() + LIMIT_S
    while True:
        entries = fleet.entries()
        shown.update(entries)
        busy = [entry["name"] for entry in entries if not fleet.is_done(entry["name"])]
        dead = [entry["name"] for entry in entries if entry["state"] in ENDED]
        if not busy:
            return
        if dead or time.monotonic() > end:
            got = (
                f"{', '.join(dead)} ended" if dead else f"{', '.join(busy)} still at work after {LIMIT_S:g} s"
            )
            raise KtError(f"got {got}, wanted all agents done with their work", exit_code=exit_codes.FAILED)
        time.sleep(LOOK_EVERY_S)


@contextlib.contextmanager
def _place(keep_in: Path | None) -> Iterator[tuple[Path, Path]]:
    """Give a state directory and a folder for the provider's log and the manifest; remove what is not to stay."""
    if keep_in is not None:
        keep_in.mkdir(mode=0o700, parents=True, exist_ok=True)
        scratch = keep_in / "demo"
        scratch.mkdir(mode=0o700)
        yield keep_in, scratch
        return
    root = Path(tempfile.mkdtemp(prefix="kt-demo-"))
    try:
        yield root / "state", root
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind like Ctrl-C, so that they clean up as well."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {name: signal.signal(name, interrupt) for name in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _end(fleet: Fleet) -> None:
    """Stop everything; a second Ctrl-C does not cut this short, or processes would stay behind."""
    before = {
        name: signal.signal(name, signal.SIG_IGN) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        fleet.end()
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def exit_code(outcome: Outcome) -> int:
    """Return 0 where every call of the provider is in the ledger with its figures, else 1."""
    return exit_codes.DONE if outcome.verdict.agrees else exit_codes.FAILED

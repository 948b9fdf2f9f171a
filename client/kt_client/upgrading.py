"""Replacing a running engine by the one that this code brings, without touching an agent.

The old one is found by nobody any more, finishes what is under way, closes the ledger and ends; the new one adopts
what runs, and has another gateway follow one of another version. The lock by which keepers elect the one that brings a
dead engine back is held meanwhile: should this process die in between, the kernel gives it back, and they do.
"""

import contextlib
import os
import re
import time
from collections.abc import Iterator
from typing import Any

from kt_client import ignition
from kt_client.errors import KtError
from kt_client.link import Link
from kt_ledger.layout import StateLayout
from kt_ledger.version import VERSION

HANDOVER_TIMEOUT_S = 60.0
END_TIMEOUT_S = 30.0
SERVICE_TIMEOUT_S = 15.0
_LOOK_EVERY_S = 0.02


def upgrade(
    files: StateLayout, *, timeout_s: float = HANDOVER_TIMEOUT_S, to_service: bool = False
) -> dict[str, Any]:
    """Replace the engine that runs, or start one; return who it was, who it is, and what the operator should know.

    `to_service`: a service manager's engine waits for the place, and is to get it.

    Raises:
        EngineUnavailable: the new one does not start; the keepers of live Runs then bring the old one back.
        KtError: the old one does not end, or the new one cannot use the ledger.
    """
    link = Link(files.engine_socket)
    if not link.answers():
        after = ignition.start(files)
        _check_ledger(after)
        return _told(None, after, [])
    before = link.ask("GET", "/v1/engine")
    with _keepers_are_quiet(files):
        notices = _hand_over(link, files, before, timeout_s)
        if to_service or before.get("service"):
            _wait_for_the_service(link)
        ignition.ensure(files)
    after = link.ask("GET", "/v1/engine")
    _check_ledger(after)
    return _told(before, after, notices)


def hint(seen: str) -> str | None:
    """Return what to tell people where the engine that answered is not of this version; None where it is."""
    if seen == VERSION:
        return None
    newer = _order(seen) > _order(VERSION)
    remedy = "use the newer kt" if newer else "`kt engine upgrade` replaces it, agents run on"
    return f"the engine that runs is of version {seen}, this kt of {VERSION}: {remedy}"


def _check_ledger(after: dict[str, Any]) -> None:
    if after.get("store") != "ok":
        raise KtError(
            f"the engine of version {after.get('version')} runs without its ledger: {after.get('store')}",
            code="ledger_unusable",
        )


def _hand_over(link: Link, files: StateLayout, before: dict[str, Any], timeout_s: float) -> list[str]:
    try:
        answer = link.ask(
            "POST", "/v1/engine/handover", body={"timeout_s": timeout_s}, timeout_s=timeout_s + END_TIMEOUT_S
        )
    except KtError as error:
        if error.code == "no_such_call":  # an engine from before there was a hand-over
            answer = link.ask("POST", "/v1/engine/stop", body={"all": False})
        elif error.code == "handing_over":  # somebody else upgrades: the end that both wait for is the same
            answer = {}
        else:
            raise
    ignition.wait_for_the_end(int(before["pid"]), files, within_s=END_TIMEOUT_S)
    return [str(notice) for notice in answer.get("notices", ())]


def _wait_for_the_service(link: Link) -> None:
    """Leave the start to the service manager that ran the old one; it is started all the same where none comes."""
    end = time.monotonic() + SERVICE_TIMEOUT_S
    while not link.answers() and time.monotonic() < end:
        time.sleep(_LOOK_EVERY_S)


@contextlib.contextmanager
def _keepers_are_quiet(files: StateLayout) -> Iterator[None]:
    import fcntl  # here, since Windows has none, and imports us all the same

    turn = os.open(files.engine_waking, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # A keeper that has the turn is bringing an engine back: there is none to replace, or there will be two at the
        # lock, of which one wins.
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(turn)


def _told(before: dict[str, Any] | None, after: dict[str, Any], notices: list[str]) -> dict[str, Any]:
    def who(facts: dict[str, Any]) -> dict[str, Any]:
        return {"pid": facts.get("pid"), "version": facts.get("version")}

    return {
        "schema_version": 1,
        "running": True,
        "replaced": None if before is None else who(before),
        "engine": who(after),
        "gateway": after.get("gateway"),
        "agents": after.get("agents"),
        "notices": notices,
    }


def _order(version: str) -> list[int]:
    """Return what orders versions: the numbers that their parts begin with."""
    return [int(found.group()) for part in version.split(".") if (found := re.match("[0-9]+", part))]

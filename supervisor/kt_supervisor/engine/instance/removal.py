"""What is left of an instance on the disk once its name is free: forgotten always, deleted where that was asked for.

Laws: the ledger decides whether an instance is removed. Before it does, the intent is durable in `removals/<id>.json`:
an engine that dies is followed by one that finishes (`docs/decisions/0129`). What shall go is renamed first, which is
quick and whole, and deleted afterwards: nobody who registers the name again can lose anything to it.
"""

import asyncio
import json
import logging
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from kt_ledger import durable
from kt_ledger.layout import StateLayout
from kt_manifest.contract import names
from kt_supervisor.engine import failpoints
from kt_supervisor.engine.output import run_logs
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.run import run_environment, run_settings

logger = logging.getLogger(__name__)

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A removal under way; `moved`: its Home is out of the way, and what has that name now is somebody else's."""

    instance_id: str
    name: str
    delete: bool
    at_ns: int
    moved: bool = False


def intend(files: StateLayout, intent: Intent) -> None:
    """Write a removal down before the ledger frees the name. Raises OSError: nothing has changed then."""
    path = files.removal(intent.instance_id)
    if not path.parent.is_dir():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _sync_folder(files.root)
    document = {
        "schema_version": VERSION,
        "name": intent.name,
        "delete": intent.delete,
        "at_ns": intent.at_ns,
        "moved": intent.moved,
    }
    durable.replace_file(path, json.dumps(document).encode() + b"\n")
    if not intent.moved:
        failpoints.reached("removal_intended", intent.name)


def carry_out(files: StateLayout, intent: Intent) -> tuple[str, ...]:
    """Do what an intent says, once the ledger has freed the name; return what could not be deleted, as notices."""
    failpoints.reached("removal_kept", intent.name)
    return finish(files, set_aside(files, intent, free=True))


def set_aside(files: StateLayout, intent: Intent, *, free: bool) -> Intent:
    """Forget what was kept for restarts, and rename what shall be deleted; return the intent as it is then.

    `free`: nobody else has the name. Where somebody has, the Home is theirs. Raises OSError.
    """
    if intent.delete and free and not intent.moved:
        _move_home(files, intent)  # first: whatever fails below, the name has no Home of ours any more
    failpoints.reached("removal_home_moved", intent.name)
    run_environment.forget(files, intent.instance_id)
    run_settings.forget(files, intent.instance_id)
    if not intent.delete:
        return intent
    runs = files.removed_runs(intent.instance_id)
    for run in run_logs.runs_of(files, intent.instance_id):
        runs.mkdir(mode=0o700, exist_ok=True)
        _move(run.root, runs / run.root.name)
    failpoints.reached("removal_moved", intent.name)
    if not intent.moved:
        intent = replace(intent, moved=True)
        intend(files, intent)
        failpoints.reached("removal_marked", intent.name)
    return intent


def finish(files: StateLayout, intent: Intent) -> tuple[str, ...]:
    """Delete what was set aside, and then the intent; return what is left, as notices: the next engine tries again."""
    left = []
    for path in (files.removed_home(intent.instance_id), files.removed_runs(intent.instance_id)):
        if intent.delete:
            _delete(path)
            left += [path] if os.path.lexists(path) else []
    if left:
        return tuple(
            f"{path} could not be deleted as a whole: see what is left in it; it is tried again when the engine starts"
            for path in left
        )
    failpoints.reached("removal_deleted", intent.name)
    files.removal(intent.instance_id).unlink(missing_ok=True)
    return ()


async def resume(parts: Parts) -> None:
    """Finish what earlier engines began, before anybody can register a name. Raises StoreUnavailable.

    A removal that the ledger does not know of did not happen: nobody was told that it had.
    """
    for intent in await asyncio.to_thread(pending, parts.files):
        row = await parts.writer.do(lambda store, intent=intent: store.instance_by_id(intent.instance_id))  # type: ignore[misc]
        holder = await parts.writer.do(lambda store, intent=intent: store.instance(intent.name))  # type: ignore[misc]
        try:
            if row is None:
                logger.warning("the removal of %s is left alone: the ledger does not know it", intent.name)
            elif row.removed_at_ns is None:
                logger.warning("%s was about to be removed, and was not: remove it again", intent.name)
                parts.files.removal(intent.instance_id).unlink(missing_ok=True)
            else:
                aside = await asyncio.to_thread(set_aside, parts.files, intent, free=holder is None)
                parts.tasks.start(f"the removal of {intent.name}", _finish_later(parts.files, aside))
        except OSError as error:
            logger.error("the removal of %s is not finished yet: %s", intent.name, error)


def pending(files: StateLayout) -> list[Intent]:
    """Return the removals that were begun; what makes no sense is left alone."""
    folder = files.removals
    return list(_read_all(sorted(folder.glob("*.json")) if folder.is_dir() else ()))


def _read_all(paths: Iterable[Path]) -> Iterable[Intent]:
    for path in paths:
        if path.name.startswith("."):
            continue  # half of one that was never in force
        try:
            told = json.loads(path.read_bytes())
            if told["schema_version"] != VERSION or not isinstance(told["delete"], bool):
                raise ValueError(told["schema_version"])
            yield Intent(
                instance_id=path.stem,
                name=names.check(str(told["name"])),
                delete=told["delete"],
                at_ns=int(told["at_ns"]),
                moved=told["moved"] is True,
            )
        except (OSError, ValueError, KeyError, TypeError, RecursionError, names.NameInvalid) as error:
            logger.warning("%s is not used: %s", path, type(error).__name__)


async def _finish_later(files: StateLayout, intent: Intent) -> None:
    for notice in await asyncio.to_thread(finish, files, intent):
        logger.warning("%s", notice)


def _move_home(files: StateLayout, intent: Intent) -> None:
    home, gone = files.home(intent.name), files.removed_home(intent.instance_id)
    if os.path.lexists(gone) or not os.path.lexists(home):
        return  # moved before; what has the name now came later
    _move(home, gone)


def _move(path: Path, gone: Path) -> None:
    """Get a folder out of the way; one that cannot be renamed, as a mount point, is emptied where it is."""
    try:
        path.rename(gone)
        _sync_folder(path.parent)
    except OSError as error:
        logger.warning("%s is deleted where it is: %s", path, error.strerror)
        _delete(path)


def _delete(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

"""The one file of this room that reads environment variables."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from kt_cli import exit_codes
from kt_cli.failure import Failure
from kt_ledger.layout import StateLayout

STATE_DIR = "KTESIO_STATE_DIR"
OLD_STATE_DIR = "HEKMA_STATE_DIR"
DIRECTORY_NAME = "ktesio"
LONGEST_PATH_BYTES = 3500
"""PATH_MAX is 4096 on Linux; the rest is for what lies below the state directory."""


def caller() -> dict[str, str]:
    """Return the whole environment of this command: what an agent that it starts will see."""
    return dict(os.environ)


def state() -> StateLayout:
    """Return the layout of the state directory that this command is about (`state_dir` has the errors)."""
    root = state_dir(os.environ, platform=sys.platform)
    if root.exists() and not root.is_dir():
        raise Failure(
            f"cannot use the state directory {root}: got something that is no directory, wanted one of our own; "
            f"set {STATE_DIR} to one",
            exit_code=exit_codes.FAILED,
        )
    return StateLayout(root)


def state_dir(variables: Mapping[str, str], *, platform: str) -> Path:
    """Return the state directory that the environment names, else the platform's data directory.

    Raises:
        Failure: exit 2, where a path is relative or too long, the two names disagree, or there is no home.
    """
    named = {name: variables[name] for name in (STATE_DIR, OLD_STATE_DIR) if variables.get(name)}
    for name, value in named.items():
        _check(name, value)
    if len({os.path.normpath(value) for value in named.values()}) > 1:
        raise Failure(
            f"got {STATE_DIR}={named[STATE_DIR]} and {OLD_STATE_DIR}={named[OLD_STATE_DIR]}, wanted one state "
            f"directory; unset one of them",
            exit_code=exit_codes.USAGE,
        )
    for value in named.values():
        return Path(os.path.normpath(value))
    return _data_directory(variables, platform) / DIRECTORY_NAME


def colour_wanted(variables: Mapping[str, str] | None = None) -> bool:
    """Return whether colour may be used on a terminal: `NO_COLOR` (no-color.org) and `TERM=dumb` say no."""
    seen = os.environ if variables is None else variables
    return not seen.get("NO_COLOR") and seen.get("TERM") != "dumb"


def columns() -> int | None:
    """Return the width that `COLUMNS` asks for; None where it asks for none."""
    asked = os.environ.get("COLUMNS", "")
    return int(asked) if asked.isascii() and asked.isdecimal() and 0 < int(asked) < 10_000 else None


def debugging() -> bool:
    """Return whether an unexpected error shows where it came from."""
    return bool(os.environ.get("KT_DEBUG"))


def completing() -> bool:
    """Return whether a shell asks for its completions (`_KT_COMPLETE=bash_source kt`)."""
    return "_KT_COMPLETE" in os.environ


def _check(name: str, value: str) -> None:
    if not value.startswith("/"):
        raise Failure(
            f"got {name}={value!r}, wanted an absolute path; write it from the root on: {name}=/path/to/state",
            exit_code=exit_codes.USAGE,
        )
    if len(os.fsencode(value)) > LONGEST_PATH_BYTES:
        raise Failure(
            f"got {name} of {len(os.fsencode(value))} bytes, "
            f"wanted at most {LONGEST_PATH_BYTES}; choose a shorter path",
            exit_code=exit_codes.USAGE,
        )


def _data_directory(variables: Mapping[str, str], platform: str) -> Path:
    chosen = variables.get("XDG_DATA_HOME", "")
    if platform != "darwin" and chosen.startswith(
        "/"
    ):  # the XDG base directory specification: a relative one is void
        return Path(chosen)
    try:
        base = Path(variables["HOME"]) if variables.get("HOME") else Path.home()
    except RuntimeError as error:
        raise Failure(
            f"got no home directory ({error}), wanted a place for the state; set {STATE_DIR}=/path/to/state",
            exit_code=exit_codes.USAGE,
        ) from error
    return base / "Library/Application Support" if platform == "darwin" else base / ".local/share"

"""Which state directory is meant. The one file of this room that reads environment variables; none is ever changed."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from kt_client.errors import KtError, WrongUse
from kt_ledger.exit_codes import USAGE
from kt_ledger.layout import StateLayout

STATE_DIR = "KTESIO_STATE_DIR"
OLD_STATE_DIR = "HEKMA_STATE_DIR"
DIRECTORY_NAME = "ktesio"
LONGEST_PATH_BYTES = 3500
"""PATH_MAX is 4096 on Linux; the rest is for what lies below the state directory."""


def caller() -> dict[str, str]:
    """Return this process's environment: of it an agent inherits what its `env.inherit` lets through."""
    return dict(os.environ)


def own_run() -> str | None:
    """Return the Run that this process is inside of, by what its keeper gave it; None outside of any."""
    return os.environ.get("KT_RUN") or None


def layout(chosen: str | os.PathLike[str] | None = None) -> StateLayout:
    """Return the layout of a state directory: the one that was chosen, else the one that the environment names.

    Raises:
        WrongUse: exit 2, as `state_dir`. KtError: exit 1, where something that is no directory is in its place.
    """
    if chosen is None:
        root = state_dir(os.environ, platform=sys.platform)
    else:
        root = Path(chosen).absolute()
        _check("state_dir", str(root))
    if root.exists() and not root.is_dir():
        raise KtError(
            f"cannot use the state directory {root}: got something that is no directory, wanted one of our own; "
            f"set {STATE_DIR} to one"
        )
    return StateLayout(root)


def state_dir(variables: Mapping[str, str], *, platform: str) -> Path:
    """Return the state directory that the environment names, else the platform's data directory.

    Raises:
        WrongUse: exit 2, where a path is relative or too long, the two names disagree, or there is no home.
    """
    named = {name: variables[name] for name in (STATE_DIR, OLD_STATE_DIR) if variables.get(name)}
    for name, value in named.items():
        _check(name, value)
    if len({os.path.normpath(value) for value in named.values()}) > 1:
        raise _wrong(
            f"got {STATE_DIR}={named[STATE_DIR]} and {OLD_STATE_DIR}={named[OLD_STATE_DIR]}, wanted one state "
            f"directory; unset one of them"
        )
    for value in named.values():
        return Path(os.path.normpath(value))
    return _data_directory(variables, platform) / DIRECTORY_NAME


def is_unused(files: StateLayout) -> bool:
    """Return whether no engine ever ran there: neither a ledger nor a socket."""
    return not files.database.exists() and not files.engine_socket.exists()


def _check(name: str, value: str) -> None:
    if not Path(value).is_absolute():
        raise _wrong(
            f"got {name}={value!r}, wanted an absolute path; write it from the root on: {name}=/path/to/state"
        )
    if len(os.fsencode(value)) > LONGEST_PATH_BYTES:
        raise _wrong(
            f"got {name} of {len(os.fsencode(value))} bytes, wanted at most {LONGEST_PATH_BYTES}; choose a shorter path"
        )


def _data_directory(variables: Mapping[str, str], platform: str) -> Path:
    chosen = variables.get("XDG_DATA_HOME", "")
    # The XDG base directory specification: a relative one is void.
    if platform != "darwin" and chosen.startswith("/"):
        return Path(chosen)
    try:
        base = Path(variables["HOME"]) if variables.get("HOME") else Path.home()
    except RuntimeError as error:
        raise _wrong(
            f"got no home directory ({error}), wanted a place for the state; set {STATE_DIR}=/path/to/state"
        ) from error
    return base / "Library/Application Support" if platform == "darwin" else base / ".local/share"


def _wrong(message: str) -> WrongUse:
    return WrongUse(message, exit_code=USAGE, code="bad_state_dir")

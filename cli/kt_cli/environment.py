"""The one file of this room that reads environment variables."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from kt_client import place
from kt_client.place import STATE_DIR as STATE_DIR
from kt_client.place import state_dir as state_dir
from kt_ledger.layout import StateLayout


def caller() -> dict[str, str]:
    """Return the whole environment of this command; an agent inherits of it what `env.inherit` lets through."""
    return dict(os.environ)


def state() -> StateLayout:
    """Return the layout of the state directory that this command is about (`kt_client.place` has the errors)."""
    return place.layout()


def make_state() -> None:
    """Make this command's state directory where it is missing (`kt_client.ignition.make_state_dir` has the errors)."""
    from kt_client import ignition

    ignition.make_state_dir(state().root)


def usual_state_dir() -> Path:
    """Return the state directory that is used where no variable names one."""
    home = {name: os.environ[name] for name in ("HOME", "XDG_DATA_HOME") if name in os.environ}
    return state_dir(home, platform=sys.platform)


def configuration_home() -> Path:
    """Return where a user's configuration files are (the XDG base directory specification)."""
    chosen = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(chosen) if chosen.startswith("/") else Path.home() / ".config"


def for_a_service(manager: str) -> dict[str, str]:
    """Return the variables that a service needs to run this very kt: none but its path, where that is set."""
    kept = {name: os.environ[name] for name in ("PYTHONPATH",) if os.environ.get(name)}
    return {"KT_SERVICE": manager, **kept}


def colour_wanted(variables: Mapping[str, str] | None = None) -> bool:
    """Return whether colour may be used on a terminal: `NO_COLOR` (no-color.org) and `TERM=dumb` say no."""
    seen = os.environ if variables is None else variables
    return not seen.get("NO_COLOR") and seen.get("TERM") != "dumb"


def editor() -> str:
    """Return the command line of the editor that the user wants: `VISUAL`, else `EDITOR`, else vi (POSIX)."""
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"


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

"""The one file of this room that reads environment variables."""

import os
from collections.abc import Mapping

from kt_client import place
from kt_client.place import STATE_DIR as STATE_DIR
from kt_client.place import state_dir as state_dir
from kt_ledger.layout import StateLayout


def caller() -> dict[str, str]:
    """Return the whole environment of this command: what an agent that it starts will see."""
    return dict(os.environ)


def state() -> StateLayout:
    """Return the layout of the state directory that this command is about (`kt_client.place` has the errors)."""
    return place.layout()


def colour_wanted(variables: Mapping[str, str] | None = None) -> bool:
    """Return whether colour may be used on a terminal: `NO_COLOR` (no-color.org) and `TERM=dumb` say no."""
    seen = os.environ if variables is None else variables
    return not seen.get("NO_COLOR") and seen.get("TERM") != "dumb"


def debugging() -> bool:
    """Return whether an unexpected error shows where it came from."""
    return bool(os.environ.get("KT_DEBUG"))


def completing() -> bool:
    """Return whether a shell asks for its completions (`_KT_COMPLETE=bash_source kt`)."""
    return "_KT_COMPLETE" in os.environ

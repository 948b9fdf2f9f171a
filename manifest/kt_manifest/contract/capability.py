"""What an agent can be asked to do, per operating system, and how much of a promise that is.

A declaration covers all three systems, and is kept whole: which level holds is decided when somebody asks, by a pure
function of the declaration and the system's name, so that every machine can test every system.
"""

import sys
from dataclasses import dataclass
from enum import StrEnum

LINUX = "linux"
MACOS = "macos"
WINDOWS = "windows"
SYSTEMS = (LINUX, MACOS, WINDOWS)

PAUSE = "pause"
INTERACTION = "interaction"
CAPABILITIES = (PAUSE, INTERACTION)


class Level(StrEnum):
    """How well a capability is supported; the words are the contract's."""

    GUARANTEED = "guaranteed"
    BEST_EFFORT = "best-effort"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """The levels of one capability; a system without an entry is unsupported."""

    linux: Level = Level.UNSUPPORTED
    macos: Level = Level.UNSUPPORTED
    windows: Level = Level.UNSUPPORTED

    def on(self, os_name: str) -> Level:
        """Return the level on `os_name`, one of `SYSTEMS`; on any other system nothing is supported."""
        levels = {LINUX: self.linux, MACOS: self.macos, WINDOWS: self.windows}
        return levels.get(os_name, Level.UNSUPPORTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What an adapter declares; a capability that it does not mention is unsupported everywhere."""

    pause: Support = Support()
    interaction: Support = Support()


def project(declaration: Declaration, os_name: str) -> dict[str, Level]:
    """Return the level of every capability on `os_name`, in the order in which tables show them."""
    return {PAUSE: declaration.pause.on(os_name), INTERACTION: declaration.interaction.on(os_name)}


def this_os() -> str:
    """Return the contract's name for the system that runs this; an unknown one by Python's own name for it."""
    return os_name(sys.platform)


def os_name(platform: str) -> str:
    """Return the contract's name for a value of `sys.platform`."""
    return {"linux": LINUX, "darwin": MACOS, "win32": WINDOWS}.get(platform, platform)

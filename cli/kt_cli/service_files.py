"""What a service manager needs to run an engine: a systemd user unit, or a launchd agent. Text in, text out.

The one law of both: the manager ends the engine and nothing else. Keepers, gateway and agents live in the unit's
control group or process group, and outlive it.
"""

import os
import plistlib
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

NAME = "kt-engine"
LABEL = "dev.ktmeter.engine"
_UNSAFE_IN_A_PROGRAM = frozenset("\"'\\$")
"""systemd refuses a program's name that holds one of the first three, and reads `$$` in it as two (tried with 252)."""

UNIT = """\
# Written by `kt engine install`; `kt engine uninstall` takes it away. Agents run on either way.
[Unit]
Description=kt engine of {state}
# A supervisor that is given up after five quick failures is none.
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={command}
{environment}
Restart=always
RestartSec=1
# Agents, their keepers and the gateway are in this unit's control group, and outlive the engine.
KillMode=process
# One agent that runs out of memory must not take the unit, and all others, with it.
OOMPolicy=continue
TasksMax=infinity
# The engine makes control groups of its own below this one: limits, freezing. A group with processes of its own
# can divide nothing (cgroups(7), "no internal processes"), so the engine has a subgroup, where systemd knows how (254).
Delegate=yes
DelegateSubgroup=engine
UMask=0077

[Install]
WantedBy=default.target
"""


class NotWritable(Exception):
    """A path or a value cannot be written into such a file."""

    exit_code = 5


def suffix(state: Path, usual: Path) -> str:
    """Return what tells the service of this state directory from others': nothing for the usual one."""
    return "" if state == usual else f"-{zlib.crc32(os.fsencode(state)):08x}"


def systemd_unit(command: Sequence[str], variables: Mapping[str, str], *, state: Path) -> str:
    """Return the text of a systemd user unit that runs `command`, whatever its words hold."""
    words = list(command)
    if _UNSAFE_IN_A_PROGRAM & set(words[0]):
        words = ["/bin/sh", "-c", 'exec "$@"', "sh", *words]
    lines = [f"Environment={_quoted(f'{name}={value}')}" for name, value in variables.items()]
    return UNIT.format(
        command=" ".join(_quoted(word).replace("$", "$$") for word in words),
        environment="\n".join(lines),
        state=_bare(str(state)),
    )


def launchd_agent(command: Sequence[str], variables: Mapping[str, str], *, label: str, log: Path) -> str:
    """Return the text of a launchd property list that runs `command`.

    Raises:
        NotWritable: a word holds what XML 1.0 cannot: a control character, or bytes that are no text.
    """
    job = {
        "Label": label,
        "ProgramArguments": list(command),
        "EnvironmentVariables": dict(variables),
        "RunAtLoad": True,
        "KeepAlive": True,
        "ThrottleInterval": 1,
        # launchd.plist(5): else everything in the engine's process group dies with it.
        "AbandonProcessGroup": True,
        "Umask": 0o077,
        "StandardErrorPath": str(log),
    }
    try:
        return plistlib.dumps(job, sort_keys=False).decode()
    except (ValueError, UnicodeError) as error:
        raise NotWritable(
            f"cannot write a launchd agent: got {error}, wanted paths of printable text; move kt or its state"
        ) from error


def _quoted(text: str) -> str:
    """Return one word as systemd reads it: in quotes, with C escapes, and no specifiers (systemd.syntax(7))."""
    escaped = []
    for byte in os.fsencode(text):
        char = chr(byte)
        if char in '"\\':
            escaped.append(f"\\{char}")
        elif char == "%":
            escaped.append("%%")
        elif byte < 0x20 or byte >= 0x7F:
            escaped.append(f"\\x{byte:02x}")
        else:
            escaped.append(char)
    return f'"{"".join(escaped)}"'


def _bare(text: str) -> str:
    """Return text for a line that people read: no specifier, no second line."""
    return "".join(char if char.isprintable() else "?" for char in text).replace("%", "%%").rstrip("\\")

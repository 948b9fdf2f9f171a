"""The one file of this room that reads environment variables.

The engine's own environment is that of whoever first needed it: nothing of it reaches an agent, and keepers, gateway
and a revived engine get only what a Python process needs to run.
"""

import os
import sys
from collections.abc import Mapping

GATEWAY = "KT_GATEWAY"
SERVICE = "KT_SERVICE"
FAILPOINT = "KT_ENGINE_FAILPOINT"
_KEPT = frozenset(
    {
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "PATH",
        "PYTHONPATH",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TMPDIR",
        "TZ",
        "USER",
        "VIRTUAL_ENV",
    }
)
_KEPT_PREFIXES = ("KT_", "LC_", "COVERAGE_")
_RUNS_OWN = frozenset({"KT_RUN", "KT_INSTANCE"})
_NEVER_GIVEN_ON = _RUNS_OWN | {SERVICE, FAILPOINT}  # an engine that a keeper brings back is no service's


def for_our_processes(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of our own children: no secret of a caller is in it, and no Run's identity."""
    seen = os.environ if variables is None else variables
    return {
        name: value
        for name, value in seen.items()
        if (name in _KEPT or name.startswith(_KEPT_PREFIXES)) and name not in _NEVER_GIVEN_ON
    }


def for_hooks() -> dict[str, str]:
    """Return what an operator's own command starts with: enough to find programs, and nothing of anybody else's."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {"PATH": os.defpath, **kept}


def gateway_is_external() -> bool:
    """Tell whether somebody else starts the gateway (`KT_GATEWAY=external`): it is waited for, never started."""
    return os.environ.get(GATEWAY) == "external"


def service() -> str | None:
    """Return which service manager runs this engine (`KT_SERVICE`, set by what `kt engine install` writes), if any."""
    return os.environ.get(SERVICE) or None


def failpoint() -> str | None:
    """Return the point at which a test lets this engine die (`failpoints`)."""
    return os.environ.get(FAILPOINT)


def leave_run(command: list[str] | None) -> None:
    """Forget the Run of an agent that happened to start the engine, by executing it again without.

    A keeper ends whatever carries its Run's id in its environment, and that is read from the kernel: it cannot be
    changed from inside (proc_pid_environ(5)).
    """
    if command is None or not _RUNS_OWN & set(os.environ):
        return
    variables = {name: value for name, value in os.environ.items() if name not in _RUNS_OWN}
    os.execve(sys.executable, [sys.executable, "-m", "kt_supervisor.engine", *command[1:]], variables)

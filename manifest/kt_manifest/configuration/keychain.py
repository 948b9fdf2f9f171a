"""The keyring of the operating system as a place of secrets: service `ktmeter`, the secret's name as the user.

The package `keyring` is an extra (`pip install 'ktmeter[keyring]'`) and talks to a service that may hang, ask somebody
or be away; so a process of its own does it (`keychain_worker`), with a limit to its time. Values go through pipes,
never through arguments.
"""

import importlib.util
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kt_manifest import exit_codes

TIMEOUT_S = 5.0
REST_S = 30.0
"""How long nobody waits again for a keyring that gave no answer: of many agents, one start waits."""
INSTALL = "pip install 'ktmeter[keyring]'"
_rests_until: dict[tuple[str, ...], float] = {}
_WORKER = (sys.executable, "-P", "-m", "kt_manifest.configuration.keychain_worker")


class KeychainUnavailable(Exception):
    """The keyring cannot be used."""

    exit_code = exit_codes.FAILED

    def __init__(self, got: str, *, is_there: bool = True) -> None:
        self.got = got
        self.is_there = is_there
        self.wanted = "a keyring that can be read and written"
        self.do = "unlock it, or keep the secret in secrets.toml"
        super().__init__(f"the keyring is not available: got {got}, wanted {self.wanted}; {self.do}")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the keyring holds of the names that were `asked`; `trouble` says why nobody knows, where nobody does.

    `is_there` is False where there is none: no package that would ask it, or no service in this session.
    """

    asked: frozenset[str]
    found: Mapping[str, str] = field(default_factory=dict, repr=False)
    trouble: str | None = None
    is_there: bool = True


def is_installed() -> bool:
    """Tell whether the package is there; nothing of it is loaded."""
    return importlib.util.find_spec("keyring") is not None


def find(names: Sequence[str], *, timeout_s: float = TIMEOUT_S, worker: Sequence[str] = _WORKER) -> Answer:
    """Return what the keyring holds under these names; raises nothing, and takes at most about `timeout_s`."""
    asked = frozenset(names)
    if time.monotonic() < _rests_until.get(tuple(worker), 0.0):
        return Answer(asked, trouble="the keyring is not asked again for now: a moment ago it gave no answer")
    if not is_installed():
        return Answer(asked, trouble=f"no keyring is looked at ({INSTALL} adds it)", is_there=False)
    try:
        told = _ask({"op": "get", "names": list(names)}, timeout_s=timeout_s, worker=worker)
    except KeychainUnavailable as error:
        return Answer(asked, trouble=f"the keyring is not available: {error.got}", is_there=error.is_there)
    found = told.get("found")
    texts = found.items() if isinstance(found, dict) else ()
    return Answer(asked, {name: value for name, value in texts if isinstance(value, str)})


def set(name: str, value: str, *, timeout_s: float = TIMEOUT_S, worker: Sequence[str] = _WORKER) -> bool:
    """Keep a value there; tell whether there was another one. Raises KeychainUnavailable."""
    return bool(_change({"op": "set", "names": [name], "value": value}, timeout_s, worker))


def remove(name: str, *, timeout_s: float = TIMEOUT_S, worker: Sequence[str] = _WORKER) -> bool:
    """Forget a value; tell whether there was one. Raises KeychainUnavailable."""
    return bool(_change({"op": "delete", "names": [name]}, timeout_s, worker))


def _change(request: dict[str, Any], timeout_s: float, worker: Sequence[str]) -> object:
    if not is_installed():
        raise KeychainUnavailable(f"no package keyring: {INSTALL}")
    return _ask(request, timeout_s=timeout_s, worker=worker).get("was")


def _ask(request: dict[str, Any], *, timeout_s: float, worker: Sequence[str]) -> dict[str, Any]:
    import subprocess  # here, since a system that only judges adapters may lack what it needs

    try:
        ran = subprocess.run(
            worker,
            input=json.dumps(request).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a backend's complaint could quote what it was given
            timeout=timeout_s,
            check=False,
            start_new_session=True,  # it asks nobody at a terminal that it could find
        )
    except subprocess.TimeoutExpired:
        _rests_until[tuple(worker)] = time.monotonic() + REST_S
        raise KeychainUnavailable(f"no answer within {timeout_s:g} s") from None
    except OSError as error:
        raise KeychainUnavailable(error.strerror or type(error).__name__) from error
    try:
        told = json.loads(ran.stdout)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise KeychainUnavailable(f"a helper that ended with code {ran.returncode}")
    if isinstance(fault := told.get("error"), str):
        raise KeychainUnavailable(fault, is_there=not told.get("absent"))
    return told

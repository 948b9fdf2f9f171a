"""`python -m kt_manifest.configuration.keychain_worker`: one question to the keyring, JSON in, JSON out, then it ends.

The only file that imports `keyring`. In: `{"op": "get"|"set"|"delete", "names": [...], "value": "..."}`. Out:
`{"found": {name: value}}`, `{"was": bool}`,
`{"error": "..."}` with the kind of the failure and nothing that it was given.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

SERVICE = "ktmeter"


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked of the keyring, whatever backend it has."""
    import keyring
    from keyring.backends import fail

    backend = keyring.get_keyring()
    if isinstance(backend, fail.Keyring):
        return {"error": "no keyring service that this session can reach", "absent": True}
    names = request["names"]
    if request["op"] == "get":
        values = {name: backend.get_password(SERVICE, name) for name in names}
        return {"found": {name: value for name, value in values.items() if value is not None}}
    was = backend.get_password(SERVICE, names[0]) is not None
    if request["op"] == "set":
        backend.set_password(SERVICE, names[0], request["value"])
    elif was:
        backend.delete_password(SERVICE, names[0])
    return {"was": was}


def _find_session_bus() -> None:
    """Name the user's own bus where nobody did: an engine that was brought back has no session's variables."""
    bus = Path(f"/run/user/{os.getuid()}/bus") if hasattr(os, "getuid") else None
    if bus is not None and "DBUS_SESSION_BUS_ADDRESS" not in os.environ and bus.is_socket():
        os.environ["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={bus}"


def main() -> None:
    """Read one request from standard input, and write its answer."""
    _find_session_bus()
    try:
        told = answer(json.loads(sys.stdin.buffer.read()))
    except Exception as error:  # whatever a backend raises: its kind is told, its words could quote a value
        told = {"error": f"{type(error).__module__}.{type(error).__name__}".removeprefix("builtins.")}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()

"""What `POST /v1/agents` may carry: a snapshot that was judged already, a manifest's path, or a built-in kind."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kt_manifest.contract import kinds
from kt_supervisor.engine.control import requests


def snapshot(body: Mapping[str, Any]) -> str:
    """Return the snapshot of the adapter that is to be registered; reads a manifest where one is named, so it blocks.

    Raises:
        Refused: no such body. ManifestNotFound, ManifestInvalid, UnknownKind, CommandInvalid: as at the command line.
    """
    if "adapter" in body:
        return requests.text(body, "adapter")
    if "manifest" in body:
        path = Path(requests.text(body, "manifest"))
        if not path.is_absolute():
            raise requests.unusable(f"got the manifest {str(path)!r}, wanted an absolute path")
        # Imported here: what judges a file (pydantic) is a tenth of an engine's start, and few engines ever need it.
        from kt_manifest.contract import manifest

        return manifest.load(path).to_json()
    kind = requests.text(body, "kind")
    if kind != kinds.COMMAND:
        return kinds.builtin(kind).to_json()
    command = body.get("command")
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        raise requests.unusable("got a 'command' that is no list of texts, wanted one")
    adapter = kinds.command(
        command,
        interactive=bool(body.get("interactive")),
        observe=bool(body.get("observe")),
        cwd=Path(requests.text(body, "cwd")),
    )
    return adapter.to_json()

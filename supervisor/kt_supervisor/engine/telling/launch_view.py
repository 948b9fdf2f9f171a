"""The document of `kt agent render`: a launch with its secrets masked, everything with where it comes from. Pure."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kt_manifest.configuration import clear_keys, secrets
from kt_manifest.launch import inheritance, substitution
from kt_manifest.launch.provenance import EnvEntry
from kt_manifest.launch.render import ArgEntry, Launch
from kt_supervisor.engine.run.previewing import Compared, Preview

VERSION = 1
HIDDEN_PART = "****"
"""What is shown in place of a listener's token in its address."""
UNSEEN = "its process cannot be looked at, so nobody can say in what it differs"
Mask = Callable[[str], str]


def document(name: str, state: str, preview: Preview, *, reveal: bool) -> dict[str, Any]:
    """Return what the next start would run.

    Args:
        reveal: show secrets and the listener's token in the clear.
    """
    launch = preview.launch
    notices = [*(preview.plan.notices if preview.plan else ()), *(launch.notices if launch else ())]
    facts: dict[str, Any] = {
        "schema_version": VERSION,
        "instance": name,
        "state": state,
        "starts": not preview.refusals,
        "refusals": list(preview.refusals),
        "launch": None,
        "running": None if preview.running is None else _running(preview.running),
        "notices": notices,
    }
    if launch is None or preview.plan is None:
        return facts
    mask = _plain if reveal else _mask(preview.hidden)
    shown = launch if reveal else preview.shown or _withheld(launch)
    facts["launch"] = _launch(shown, preview, mask, reveal=reveal)
    return facts


def _launch(launch: Launch, preview: Preview, mask: Mask, *, reveal: bool) -> dict[str, Any]:
    assert preview.plan is not None
    return {
        "executable": preview.executable,
        "cwd": str(preview.plan.home),
        "argv": [_argument(entry, mask) for entry in launch.arguments],
        "env": [
            _variable(entry, mask, reveal=reveal)
            for entry in sorted(launch.variables, key=lambda entry: entry.name)
        ],
        "folders": list(launch.folders),
        "files": [
            {
                "path": file.path,
                "mode": f"{file.mode:04o}",
                "content": mask(file.content) if file.content else None,
            }
            for file in launch.files
        ],
        "merges": [
            {
                "path": file.path,
                "format": file.format,
                "values": [
                    {"at": list(place), "value": mask(_written(value))} for place, value in file.edits
                ],
            }
            for file in launch.merges
        ],
    }


def _withheld(launch: Launch) -> Launch:
    """Return a launch whose files and values are not told, where they cannot be rendered with masked secrets."""
    return replace(
        launch,
        arguments=tuple(replace(one, text=secrets.MASK) if one.key else one for one in launch.arguments),
        variables=tuple(replace(one, value=secrets.MASK) if one.key else one for one in launch.variables),
        files=tuple(replace(file, content=file.content and secrets.MASK) for file in launch.files),
        merges=tuple(
            replace(file, edits=tuple((at, secrets.MASK) for at, _ in file.edits)) for file in launch.merges
        ),
    )


def _argument(entry: ArgEntry, mask: Mask) -> dict[str, Any]:
    return {"text": mask(entry.text), "source": str(entry.source), "key": entry.key or None}


def _variable(entry: EnvEntry, mask: Mask, *, reveal: bool) -> dict[str, Any]:
    value = mask(entry.value)
    if entry.value and not reveal and inheritance.is_provider_key(entry.name):
        value = clear_keys.MASK
    return {"name": entry.name, "value": value, "source": str(entry.source), "key": entry.key or None}


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(text: str) -> str:
    return text


def _mask(hidden: Sequence[str]) -> Mask:
    """Return what replaces every form of every secret, the longest first, since one may be part of another."""
    forms = sorted({form for secret in hidden for form in substitution.forms(secret)}, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, (secrets.MASK, *forms))))  # what is masked already stays so
    return lambda text: pattern.sub(secrets.MASK, text) if forms else text


def _running(compared: Compared) -> dict[str, Any]:
    found = compared.differences
    return {
        "run_id": compared.run_id,
        "pid": compared.pid,
        "differs": None
        if found is None
        else [{"what": one.what, "name": one.name or None, "how": one.how} for one in found],
        "why": UNSEEN if found is None else None,
    }

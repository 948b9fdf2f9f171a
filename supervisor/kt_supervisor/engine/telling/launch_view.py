"""The document of `kt agent render`: a launch with its secrets masked, everything with where it comes from. Pure."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from kt_manifest.configuration import options, secrets, settings
from kt_manifest.launch import inheritance, substitution, typed_value
from kt_manifest.launch.provenance import EnvEntry
from kt_manifest.launch.render import ArgEntry, Launch
from kt_supervisor.engine.run.launching import Plan
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
    mask = _plain if reveal else _mask(preview.hidden, preview.tokens)
    facts["launch"] = _launch(launch, preview, mask, reveal=reveal)
    return facts


def _launch(launch: Launch, preview: Preview, mask: Mask, *, reveal: bool) -> dict[str, Any]:
    assert preview.plan is not None
    return {
        "executable": preview.executable,
        "cwd": str(preview.plan.home),
        "argv": [_argument(entry, mask) for entry in launch.arguments],
        "env": [
            _variable(entry, mask, preview.plan, reveal=reveal)
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


def _argument(entry: ArgEntry, mask: Mask) -> dict[str, Any]:
    return {"text": mask(entry.text), "source": str(entry.source), "key": entry.key or None}


def _variable(entry: EnvEntry, mask: Mask, plan: Plan, *, reveal: bool) -> dict[str, Any]:
    value = mask(entry.value) if reveal or not entry.value else _masked(entry, mask, plan)
    return {"name": entry.name, "value": value, "source": str(entry.source), "key": entry.key or None}


def _masked(entry: EnvEntry, mask: Mask, plan: Plan) -> str:
    """Return a variable as `config get` would show its setting, where it is one as it stands."""
    if inheritance.is_provider_key(entry.name) or entry.key == options.UPSTREAM_API_KEY:
        return secrets.MASK
    if entry.key not in plan.secret_keys:
        return mask(entry.value)
    written = plan.written.get(entry.key)
    if not entry.passes_through or written is None:
        return secrets.MASK
    return mask(typed_value.as_text(settings.shown(entry.key, written)))


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(text: str) -> str:
    return text


def _mask(hidden: Sequence[str], tokens: Sequence[str]) -> Mask:
    """Return what replaces every form of every secret, the longest first, since one may be part of another.

    A token that stands in a path, as in the listener's address, is replaced as `config get` does.
    """
    paths = {f"/{token}": f"/{HIDDEN_PART}" for token in tokens}
    found = {form: secrets.MASK for secret in hidden for form in substitution.forms(secret)} | paths
    forms = sorted(found, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, forms)))
    return lambda text: pattern.sub(lambda one: found[one[0]], text) if forms else text


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

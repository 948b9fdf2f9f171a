"""How an adapter's posture is written for people; what nobody declares is said to be that, never to be absent."""

import json
import shlex
from typing import Any

from kt_cli import figures, terminal

NOT_DECLARED = "not declared"


def rows(posture: Any) -> list[tuple[str, str]]:
    """Return the rows of `kt agent show`; none where the engine gave nothing to say."""
    if not isinstance(posture, dict):
        return []
    found = [*_isolation(posture.get("isolation")), *_updates(posture.get("updates"))]
    if syntaxes := posture.get("substitution"):
        found.append(
            ("Placeholders", f"{_listed(syntaxes)}: each needs a variable with a value, or it does not start")
        )
    return [(title, terminal.visible(text)) for title, text in found]


def _isolation(isolation: dict[str, Any] | None) -> list[tuple[str, str]]:
    if isolation is None:
        return [
            ("Isolation", f"{NOT_DECLARED}: instances share what the agent keeps outside of its Agent Home")
        ]
    folders = [f"{name} = {folder}" for name, folder in isolation["directories"].items()]
    found = [("Isolation", f"{_listed(folders)} (in the Agent Home)")]
    if levers := isolation["undocumented"]:
        found.append(("Undocumented levers", f"{_listed(levers)}: to be tried again with each release"))
    return [*found, ("Isolation last tried on", isolation["validated"] or f"{figures.ABSENT} (nobody says)")]


def _updates(updates: dict[str, Any] | None) -> list[tuple[str, str]]:
    if updates is None:
        return [("Self-update", f"{NOT_DECLARED}: it may update itself")]
    tried = (
        f"last tried on {updates['verified']}"
        if updates["verified"]
        else "nobody says when that was last tried"
    )
    if updates["never"]:
        return [("Self-update", f"the agent has none ({tried})")]
    by = [f"{name}={value}" for name, value in updates["env"].items()]
    by += [shlex.join(updates["args"])] if updates["args"] else []
    if config := updates["config"]:
        by.append(f"{config['key']} = {json.dumps(config['value'])} in {config['env']}")
    words = f"; {updates['switch']}" if updates["switch"] else ""
    found = [("Self-update", f"switched off by {_listed(by)} ({tried}){words}")]
    return [*found, ("Managed layer", _managed(updates["managed_layer"]))]


def _managed(layer: bool | str | None) -> str:
    if isinstance(layer, str):
        return layer
    if layer is None:
        return f"{figures.ABSENT} (nobody says whether one can override the switch)"
    return "can override the switch" if layer else "cannot override the switch"


def _listed(items: Any) -> str:
    return ", ".join(map(str, items))

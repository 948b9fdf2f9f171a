"""The small JSON files in a Run's folder that tell of it without the ledger: read as they are, or not at all."""

import json
from pathlib import Path
from typing import Any

from kt_ledger.layout import RunLayout


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a record; None where there is none, or it is no object."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def owner(run: RunLayout) -> dict[str, Any] | None:
    """Return whose Run this is: {instance_id, name, number}, as written before the keeper was started."""
    return read_json(owner_file(run))


def owner_file(run: RunLayout) -> Path:
    """Return the file that says whose Run this is."""
    return run.root / "owner.json"

"""The environment in which an instance was last started, kept so that it can be started again without a caller.

Laws: 0600 from birth, in a folder of 0700, replaced whole or not at all, gone with the instance; of what a secret
reference names it holds the name alone (`docs/decisions/0105`).
"""

import json
import logging
import os
import stat
from collections.abc import Iterable, Mapping

from kt_ledger import durable
from kt_ledger.layout import StateLayout

logger = logging.getLogger(__name__)

VERSION = 1


def store(
    files: StateLayout, instance_id: str, environment: Mapping[str, str], *, secret_names: Iterable[str] = ()
) -> None:
    """Keep a base environment for restarts; variables that settings refer to as secrets are left out.

    Raises:
        OSError: it could not be kept; what was kept before is still there.
    """
    withheld = sorted(set(secret_names))
    kept = {name: value for name, value in environment.items() if name not in withheld}
    document = {"schema_version": VERSION, "environment": kept, "secret_names": withheld}
    # Variables may hold any bytes: they are surrogates here (PEP 383), which JSON writes as escapes.
    data = json.dumps(document, indent=1, sort_keys=True).encode("ascii") + b"\n"
    path = files.environment(instance_id)
    if _read(path) == data:
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    durable.replace_file(path, data)


def load(files: StateLayout, instance_id: str) -> dict[str, str] | None:
    """Return the base environment of the last start.

    None where there is none that can be trusted: never started, damaged, another user's, or open to others.
    """
    path = files.environment(instance_id)
    data = _read(path)
    if data is None:
        return None
    try:
        document = json.loads(data)
        found = document["environment"]
        if document["schema_version"] != VERSION or not isinstance(found, dict):
            raise ValueError(f"version {document['schema_version']!r}")
        if not all(isinstance(value, str) for value in found.values()):
            raise ValueError("a value that is no text")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        logger.warning("%s is not used: it is damaged (%s)", path, type(error).__name__)
        return None
    return found


def forget(files: StateLayout, instance_id: str) -> None:
    """Remove what is kept of an instance that is removed. Raises OSError."""
    files.environment(instance_id).unlink(missing_ok=True)


def _read(path: "os.PathLike[str]") -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        logger.warning("%s cannot be read: %s", path, error.strerror)
        return None
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        others = facts.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid() or others:
            logger.warning("%s is not used: it is no file of mode 0600 of this user", path)
            return None
        return file.read()

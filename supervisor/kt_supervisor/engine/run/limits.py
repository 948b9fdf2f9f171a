"""What an agent may use of the machine: settings in, what the keeper is told out, and who enforces it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kt_manifest.configuration import options, value_types
from kt_manifest.configuration.value_types import Value

NOT_ENFORCED = "not enforced"
UNKNOWN = f"{NOT_ENFORCED}: its keeper says nothing about it; it takes effect at the next start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one agent's processes may use together; `nofile` is for each process. None: unlimited."""

    memory_bytes: int | None = None
    cpu_cores: float | None = None
    pids: int | None = None
    nofile: int | None = None

    def for_keeper(self, cgroup_parent: str | None) -> dict[str, Any]:
        """Return the arguments of the keeper's `specification.build` that say this."""
        facts = {name: getattr(self, name) for name in self.__slots__}
        given = {name: value for name, value in facts.items() if value is not None}
        said = {"limits": given, "cgroup_parent": cgroup_parent}
        return {name: value for name, value in said.items() if value}


def effective(values: Mapping[str, Value]) -> Limits:
    """Return the limits that resolved settings name; they have been checked before."""
    memory, cpu, pids, nofile = (values.get(key) for key in options.LIMITS)
    return Limits(
        memory_bytes=None if memory is None else value_types.bytes_in(str(memory)),
        cpu_cores=None if cpu is None else float(str(cpu)),
        pids=None if pids is None else int(str(pids)),
        nofile=None if nofile is None else int(str(nofile)),
    )


def unenforced(record: Mapping[str, Any] | None) -> list[str]:
    """Return what a start says of the limits that hold nothing back, by the Run's `run.json`."""
    recorded = (record or {}).get("limits")
    enforced = recorded if isinstance(recorded, dict) else {}
    return [f"limits.{name} is {how}" for name, how in enforced.items() if str(how).startswith(NOT_ENFORCED)]


def shown(settings: Mapping[str, Value], record: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return every limit that is set or enforced, for `show`: its value in the settings, and what holds it.

    Args:
        settings: the instance's settings as they are now.
        record: `run.json` of the Run under way; None where nothing runs.
    """
    recorded = (record or {}).get("limits")
    enforced = recorded if isinstance(recorded, dict) else {}
    document: dict[str, dict[str, Any]] = {}
    for key in options.LIMITS:
        name = key.partition(".")[2]
        value, how = settings.get(key), enforced.get(name)
        if value is None and how is None:
            continue
        if record is not None and how is None:
            how = UNKNOWN
        document[name] = {"value": value, "enforced": how}
    return document

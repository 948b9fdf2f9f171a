"""What a keeper is told: one JSON object, built by the engine, read by the keeper from its standard input."""

import json

from kt_supervisor.keeper import PROTOCOL

DEFAULT_SEGMENT_LIMIT_BYTES = 16 * 1024 * 1024
DEFAULT_GATEWAY_GRACE_S = 60.0
DEFAULT_SWEEP_GRACE_S = 1.0
DEFAULT_FREE_FLOOR_BYTES = 64 * 1024 * 1024
LIMITS = ("memory_bytes", "cpu_cores", "pids", "nofile")
_LACKING = object()


class SpecificationInvalid(Exception):
    """The keeper was told something it cannot act on; nothing was started."""


class Takeover:
    """An agent whose keeper is dead. `out`, `err` and `pidfd` are inherited descriptors, None where nobody held one."""

    __slots__ = ("agent_pid", "agent_start_ticks", "err", "out", "pidfd")

    def __init__(self, fields: dict[str, object]) -> None:
        """Check every field. Raises SpecificationInvalid."""
        self.agent_pid = _whole(fields, "agent_pid")
        self.agent_start_ticks = _whole(fields, "agent_start_ticks")
        self.out, self.err, self.pidfd = (
            None if fields.get(name) is None else _whole(fields, name) for name in ("out", "err", "pidfd")
        )

    def descriptors(self) -> tuple[int, ...]:
        """Return those that were inherited."""
        return tuple(number for number in (self.out, self.err, self.pidfd) if number is not None)


class Specification:
    """One Run, as the engine wants it. Fields as in the protocol; `_s` are seconds, `_bytes` bytes."""

    __slots__ = (
        "argv",
        "cgroup_parent",
        "cwd",
        "engine_command",
        "engine_env",
        "env",
        "free_floor_bytes",
        "gateway_grace_s",
        "instance_id",
        "interactive",
        "lend_from",
        "limits",
        "name",
        "room",
        "run_id",
        "segment_limit_bytes",
        "state_dir",
        "sweep_grace_s",
        "takeover",
    )

    def __init__(self, fields: dict[str, object]) -> None:
        """Check every field.

        Raises:
            SpecificationInvalid: names the field, what was got and what was wanted.
        """
        if fields.get("protocol") != PROTOCOL:
            got = fields.get("protocol")
            raise SpecificationInvalid(
                f"protocol: got {got!r}, wanted {PROTOCOL}; start the keeper of your version"
            )
        self.run_id = _text(fields, "run_id")
        self.instance_id = _text(fields, "instance_id")
        self.name = _text(fields, "name")
        self.state_dir = _text(fields, "state_dir")
        self.argv = _texts(fields, "argv")
        self.env = _mapping(fields, "env")
        self.cwd = _text(fields, "cwd")
        self.interactive = fields.get("interactive") is True
        self.engine_command = _texts(fields, "engine_command")
        self.engine_env = _mapping(fields, "engine_env")
        self.lend_from = None if fields.get("lend_from") is None else _text(fields, "lend_from")
        self.segment_limit_bytes = int(_number(fields, "segment_limit_bytes", DEFAULT_SEGMENT_LIMIT_BYTES))
        self.gateway_grace_s = _number(fields, "gateway_grace_s", DEFAULT_GATEWAY_GRACE_S)
        self.sweep_grace_s = _number(fields, "sweep_grace_s", DEFAULT_SWEEP_GRACE_S)
        self.free_floor_bytes = int(_number(fields, "free_floor_bytes", DEFAULT_FREE_FLOOR_BYTES))
        self.cgroup_parent = None if fields.get("cgroup_parent") is None else _text(fields, "cgroup_parent")
        self.limits = _limits(fields)
        self.room = None if fields.get("room") is None else int(_number(fields, "room", 0))
        self.takeover = _takeover(fields)
        if self.segment_limit_bytes < 1 or not self.argv:
            raise SpecificationInvalid(
                "got no argv or segment_limit_bytes < 1; wanted a program and at least 1 byte"
            )
        if "/" in self.run_id or self.run_id in ("", ".", ".."):
            raise SpecificationInvalid(f"run_id: got {self.run_id!r}, wanted the name of one folder")


def parse(data: bytes) -> Specification:
    """Return the specification in `data`.

    Raises:
        SpecificationInvalid: not JSON, not an object, or a field is wrong.
    """
    try:
        fields = json.loads(data)
    except ValueError as error:
        raise SpecificationInvalid(
            f"got {len(data)} bytes that are not JSON ({error}), wanted one object"
        ) from error
    if not isinstance(fields, dict):
        raise SpecificationInvalid(f"got a JSON {type(fields).__name__}, wanted an object")
    return Specification(fields)


def build(
    *,
    run_id: str,
    instance_id: str,
    name: str,
    state_dir: str,
    argv: list[str],
    env: dict[str, str],
    cwd: str,
    engine_command: list[str],
    engine_env: dict[str, str],
    interactive: bool = False,
    lend_from: str | None = None,
    segment_limit_bytes: int = DEFAULT_SEGMENT_LIMIT_BYTES,
    gateway_grace_s: float = DEFAULT_GATEWAY_GRACE_S,
    sweep_grace_s: float = DEFAULT_SWEEP_GRACE_S,
    free_floor_bytes: int = DEFAULT_FREE_FLOOR_BYTES,
    room: int | None = None,
    limits: dict[str, float] | None = None,
    cgroup_parent: str | None = None,
    takeover: dict[str, int | None] | None = None,
) -> bytes:
    """Return what to write to a new keeper's standard input, then close that.

    `argv[0]` is an absolute path; `state_dir` is absolute and holds `runs/<run_id>/` (0700), made by the engine.

    Raises:
        SpecificationInvalid: the keeper would refuse it.
    """
    fields: dict[str, object] = dict(locals())
    fields["protocol"] = PROTOCOL
    Specification(fields)
    return json.dumps(fields).encode()


def _text(fields: dict[str, object], name: str) -> str:
    value = fields.get(name, _LACKING)
    if isinstance(value, str):
        return value
    raise SpecificationInvalid(f"{name}: got {_shown(value)}, wanted text")


def _texts(fields: dict[str, object], name: str) -> list[str]:
    value = fields.get(name, _LACKING)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    raise SpecificationInvalid(f"{name}: got {_shown(value)}, wanted a list of texts")


def _mapping(fields: dict[str, object], name: str) -> dict[str, str]:
    value = fields.get(name, _LACKING)
    if isinstance(value, dict) and all(isinstance(key, str) and isinstance(value[key], str) for key in value):
        return value
    raise SpecificationInvalid(f"{name}: got {_shown(value)}, wanted an object of texts")


def _number(fields: dict[str, object], name: str, default: float) -> float:
    value = fields.get(name, default)
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return value
    raise SpecificationInvalid(f"{name}: got {_shown(value)}, wanted a number of at least 0")


def _whole(fields: dict[str, object], name: str) -> int:
    value = fields.get(name, _LACKING)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise SpecificationInvalid(f"{name}: got {_shown(value)}, wanted a whole number of at least 0")


def _limits(fields: dict[str, object]) -> dict[str, float]:
    limits = fields.get("limits")
    if limits is None:
        return {}
    if not isinstance(limits, dict):
        raise SpecificationInvalid(f"limits: got {_shown(limits)}, wanted an object")
    found = {name: _number(limits, name, 0) for name in LIMITS if limits.get(name) is not None}
    for name, value in found.items():
        if value <= 0 or (name != "cpu_cores" and value != int(value)):
            kind = "a number" if name == "cpu_cores" else "a whole number"
            raise SpecificationInvalid(f"limits.{name}: got {value:g}, wanted {kind} above 0")
    return found


def _takeover(fields: dict[str, object]) -> Takeover | None:
    takeover = fields.get("takeover")
    if takeover is None:
        return None
    if not isinstance(takeover, dict):
        raise SpecificationInvalid(f"takeover: got {_shown(takeover)}, wanted an object")
    return Takeover(takeover)


def _shown(value: object) -> str:
    # The type only: environments hold secrets.
    return "nothing" if value is _LACKING else f"a JSON {type(value).__name__}"

"""The keeper's specification: one JSON object, protocol 1, as `keeper/__init__.py` lists it.

It carries the agent's whole environment, secrets included: it travels over a pipe and is never written down.
"""

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Self

from kt_ledger.layout import RunLayout, StateLayout
from kt_supervisor.keeper import PROTOCOL


class SpecInvalid(Exception):
    """The specification cannot be followed; the message says what was got and what was wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What to run and under whose eyes. `argv[0]` is an absolute path; an empty `engine_command` is never started."""

    run_id: str
    instance_id: str
    name: str
    state_dir: str
    argv: tuple[str, ...]
    env: dict[str, str] = field(repr=False)
    cwd: str
    interactive: bool = False
    engine_command: tuple[str, ...] = ()
    engine_env: dict[str, str] = field(default_factory=dict, repr=False)
    lend_from: str | None = None
    segment_limit_bytes: int = 8 << 20
    umask: int = 0o022
    gateway_grace_s: float = 60.0
    sweep_grace_s: float = 2.0
    engine_wait_s: float = 5.0
    protocol: int = PROTOCOL

    @property
    def state(self) -> StateLayout:
        """The files of the state directory."""
        return StateLayout(Path(self.state_dir))

    @property
    def files(self) -> RunLayout:
        """The files of this Run."""
        return self.state.run(self.run_id)

    def encode(self) -> bytes:
        """Return the JSON to hand to a keeper on its standard input."""
        return json.dumps(asdict(self)).encode("utf-8", "surrogateescape")

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read a specification; fields of a later version are ignored.

        Raises:
            SpecInvalid: not an object, another protocol, or a field is missing.
        """
        try:
            facts = json.loads(data.decode("utf-8", "surrogateescape"))
        except ValueError as error:
            raise SpecInvalid(f"got {data[:60]!r}, wanted a JSON object") from error
        if not isinstance(facts, dict) or facts.get("protocol") != PROTOCOL:
            raise SpecInvalid(f"got no specification of protocol {PROTOCOL}")
        known = {f.name for f in fields(cls)}
        facts = {name: value for name, value in facts.items() if name in known}
        for name in ("argv", "engine_command"):
            facts[name] = tuple(facts.get(name, ()))
        try:
            return cls(**facts)
        except TypeError as error:
            raise SpecInvalid(f"incomplete specification: {error}") from error

"""What the engine and the gateway say to each other: HTTP with JSON over the gateway's admin socket.

| call | body | answer |
|---|---|---|
| `GET /v1/status` | | `Status` |
| `PUT /v1/listeners/{instance}` | `Listener` | 200 `{"port": N}`; 409 `{"error": "port_taken", ...}` |
| `DELETE /v1/listeners/{instance}` | | 200; the port is closed, streams under way end by themselves |
| `GET /v1/listeners/{instance}/key` | | `ListenerKey`, to the engine alone; else 403, without a listener 404 |
| `GET /v1/progress` | | NDJSON: `{"segment": N, "offset": M}` after each write to the journal, coalesced |
| `POST /v1/flush` | | 200 once everything written so far can be read from the journal |
| `POST /v1/drain` | `{"timeout_s": S}` | stops accepting, waits for streams under way, exits |

Dataclasses with `to_json`/`from_json`; unknown fields are ignored (the two may be a version apart).
"""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

PROBE_PATH = "/.kt/probe"
"""Below the token: answered 204 by the gateway itself, never forwarded, never recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A live Run and the token that speaks for it."""

    run_id: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Everything the gateway needs to know of one instance; sending it again replaces what it knew.

    `grants` empty: the instance is stopped, calls get 403 `instance_stopped`. `borrow_from`: the keeper socket that
    holds the listening socket of a live Run; where it is None or refuses, the gateway binds `port` itself.
    `hold_s` set: the instance is paused; new calls of granted Runs are held for at most so many seconds, then refused
    for good (`instance_paused`); a message without it lets them go on, one without their grant refuses them.
    """

    instance_id: str
    name: str
    port: int
    upstream: str  # absolute http(s) URL without a trailing slash; its path is the prefix the agent sees
    grants: tuple[Grant, ...] = ()
    listener_auth: str = "token"  # or "none"
    upstream_api_key: str | None = field(default=None, repr=False)  # clear text, in memory only
    borrow_from: str | None = None
    hold_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the message; it carries a key and tokens: send it, never write it."""
        return asdict(self)

    @classmethod
    def from_json(cls, message: dict[str, Any]) -> Self:
        """Read a message; raises KeyError or TypeError where a field without a default is missing."""
        known = {f.name for f in fields(cls)}
        facts = {name: value for name, value in message.items() if name in known}
        facts["grants"] = tuple(
            Grant(run_id=grant["run_id"], token=grant["token"]) for grant in facts.get("grants", ())
        )
        return cls(**facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerKey:
    """The provider's key that a listener's calls carry, for an engine that has to keep it out of what it shows."""

    upstream_api_key: str | None = field(repr=False)  # clear text, in memory only; None: it has none

    def to_json(self) -> dict[str, Any]:
        """Return the message; it carries a key: send it, never write it."""
        return asdict(self)

    @classmethod
    def from_json(cls, message: dict[str, Any]) -> Self:
        """Read a message; raises KeyError or TypeError where it is none."""
        key = message["upstream_api_key"]
        if key is not None and not isinstance(key, str):
            raise TypeError("wanted a text, or null")
        return cls(upstream_api_key=key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Who the gateway is and what it holds."""

    version: str
    pid: int
    start_ticks: int
    boot_id: str
    incarnation: str
    started_at_ns: int
    listeners: dict[str, int]  # instance id -> port
    in_flight: int
    journal_healthy: bool
    held: int = 0  # calls of paused instances that wait

    def to_json(self) -> dict[str, Any]:
        """Return the message."""
        return asdict(self)

    @classmethod
    def from_json(cls, message: dict[str, Any]) -> Self:
        """Read a message, ignoring fields of a later version."""
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in message.items() if name in known})

"""How one API family speaks, as data: the core branches on these facts, never on a family's name."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kt_gateway.decode import refusal
from kt_gateway.decode.finding import Finding
from kt_gateway.decode.shape import Path, Shape
from kt_ledger.values import Counts

GAP = rb"(?:\s|data:)*"
"""White space, and the seams of multi-line data, between a member's name, its colon and its value."""


def tells(name: str) -> re.Pattern[bytes]:
    """Return what finds a member that is not null, by name, in bytes of JSON.

    A quote inside JSON text is escaped, so text cannot look like a member.
    """
    return re.compile(rb'"%b"%b:%b[^n\s]' % (name.encode(), GAP, GAP))


class Telling:
    """Finds the events that are worth parsing: members that are not null, or one of some words anywhere.

    Each pattern begins with a literal, which `re` looks for in C; one pattern of alternatives would be slower.
    """

    def __init__(self, *names: str, words: tuple[bytes, ...] = ()) -> None:
        self._members = tuple(tells(name).search for name in names)
        self._words = (b"error", *words)

    def __call__(self, data: bytes) -> bool:
        """Whether these bytes may tell something."""
        for word in self._words:
            if word in data:
                return True
        for search in self._members:  # noqa: SIM110 (a generator costs a third of a chunk's time)
            if search(data) is not None:
                return True
        return False


USAGE = Telling("usage")
NEVER = re.compile(rb"(?!)")
"""Finds nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """Where a request says what it asks for."""

    model: Path = ("model",)
    model_in_path: re.Pattern[str] | None = re.compile(r"/deployments/([^/]+)/")  # Azure's alias
    stream: Path = ("stream",)
    streams: bool | None = None  # whether the answer is a stream where the body does not say
    max_tokens: tuple[Path, ...] = (("max_completion_tokens",), ("max_tokens",))
    choices: Path = ("n",)
    characters: Path | None = None  # text that is charged by its length


BODY = Asks()

SSE, LINES, ARRAY = "sse", "lines", "array"
"""The framings of a streamed answer: server-sent events, one JSON value a line, one JSON array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one API family speaks."""

    family: str
    method: str = "POST"
    suffixes: tuple[str, ...]  # of the path: prefixes like /openai/deployments/<name> do not matter
    pattern: re.Pattern[str] | None = None  # which the path must match too
    read: Callable[[dict[str, Any]], Finding]
    shape: Shape
    members: frozenset[str]
    inside: Mapping[str, frozenset[str]] = field(
        default_factory=dict
    )  # members of members, for large documents
    asks: Asks = BODY
    framings: tuple[str, ...] = (SSE,)
    terminal: bytes | None = None  # what the data of the event that ends a stream begins with
    typed_terminal: bool = False  # the event that ends a stream is known by its content (`Finding.terminal`)
    telling: Telling = USAGE  # finds the events that are worth parsing
    finish: re.Pattern[bytes] = NEVER  # finds a finish reason in an event too long to keep
    asks_for_usage: bool = False  # whether a streamed request must carry stream_options.include_usage
    overlays: bool = False  # usage comes in pieces: later members replace earlier ones, key by key
    fixed: Counts | None = None  # what a successful answer counts, whatever it says
    unbilled: bool = False  # an answer that reports no usage costs nothing
    refuse: Callable[[str, str], refusal.Refused] = (
        refusal.openai
    )  # (code, message) in the dialect's own words
    key_header: str = "authorization"

"""The API families we can meter, one line each; a request's method and path decide."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kt_gateway.decode import chat
from kt_gateway.decode.finding import Finding
from kt_gateway.decode.usage import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one API family speaks."""

    family: str
    method: str
    suffix: str  # of the path, so that prefixes like /openai/deployments/<name> do not matter
    read: Callable[[dict[str, Any]], Finding]
    shape: Shape
    members: frozenset[str]
    terminal: bytes  # what the data of the event that ends a stream begins with
    asks_for_usage: bool  # whether a streamed request must carry stream_options.include_usage


DIALECTS: tuple[Dialect, ...] = (
    Dialect(
        family="chat.completions",
        method="POST",
        suffix="/chat/completions",
        read=chat.read,
        shape=chat.SHAPE,
        members=chat.MEMBERS,
        terminal=b"[DONE]",
        asks_for_usage=True,
    ),
)

UNKNOWN_FAMILY = "unknown"


def dialect_of(method: str, path: str, *, dialects: tuple[Dialect, ...] = DIALECTS) -> Dialect | None:
    """Return the dialect of a request, None where its usage cannot be read (GETs of stored answers included)."""
    bare = path.rstrip("/")
    for dialect in dialects:
        if method == dialect.method and bare.endswith(dialect.suffix):
            return dialect
    return None

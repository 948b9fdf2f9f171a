"""What one document of an answer says, in words that all dialects share."""

from dataclasses import dataclass
from typing import Any

TEXT_LIMIT = 200
"""Characters of a model name, an id or a tier that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The facts of one event, or of a whole answer that is one document."""

    usage: dict[str, Any] | None = None
    usage_aside: dict[str, Any] | None = None  # a second home of usage, used only where the first stays empty
    model: str | None = None
    request_id: str | None = None
    service_tier: str | None = None
    error: bool = False
    finished: bool = False  # a choice carries its finish reason
    spoke: bool = False  # the model said something: text, reasoning, a tool call; not a role frame
    only_usage: bool = False  # the event exists only to report usage
    terminal: bool = False  # the event ends its dialect's stream
    deferred: bool = False  # the work is not done yet: its usage comes with a later answer


def text(value: Any) -> str | None:
    """Return a non-empty string, cut to what is kept; None for anything else."""
    return value[:TEXT_LIMIT] if isinstance(value, str) and value else None


def word(value: Any) -> str:
    """Return a string, empty for anything else: JSON may hold what no set can be asked for."""
    return value if isinstance(value, str) else ""


def member(value: Any, name: str) -> dict[str, Any] | None:
    """Return an object's member that is an object itself; None otherwise."""
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else None


def any_of(items: Any, claim: Any) -> bool:
    """Whether a list holds an object for which the claim is true."""
    return isinstance(items, list) and any(isinstance(item, dict) and claim(item) for item in items)

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


def text(value: Any) -> str | None:
    """Return a non-empty string, cut to what is kept; None for anything else."""
    return value[:TEXT_LIMIT] if isinstance(value, str) and value else None

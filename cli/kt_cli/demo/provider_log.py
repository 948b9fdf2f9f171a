"""The provider's own log: what a provider received and what it answered, the judge over every ledger.

NDJSON, appended without syncing, two lines a call:

    {"event": "received", "id", "at_ns", "case", "method", "path", "model", "bytes", "stream", "include_usage"}
    {"event": "answered", "id", "at_ns", "status", "complete", "body_bytes", "usage": {...} | null}

`received` is written once the request is there in full, before a byte of the answer leaves; `usage` is the usage object
in what was really sent, null where none was. Nothing of a body or a header value is written but the model's name.
"""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCall:
    """One call as the provider saw it; `answered` is False while it was never answered to the end of a try."""

    id: str
    case: str
    method: str
    path: str
    model: str
    request_bytes: int
    stream: bool
    include_usage: bool
    answered: bool = False
    status: int | None = None
    complete: bool = False
    usage: dict[str, Any] | None = None

    @property
    def input_tokens(self) -> int | None:
        """Input tokens that the provider reported for this call; None where it reported none."""
        return self.usage.get("prompt_tokens") if self.usage else None

    @property
    def output_tokens(self) -> int | None:
        """Output tokens that the provider reported for this call; None where it reported none."""
        return self.usage.get("completion_tokens") if self.usage else None


class ProviderLog:
    """Appends lines; one `write` a line, so that a reader sees whole lines or an unfinished last one."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, **facts: Any) -> None:
        """Append one line."""
        os.write(self._file, json.dumps(facts, ensure_ascii=False).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def __enter__(self) -> Self:
        """Return the log itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()


def read(path: Path) -> list[ProviderCall]:
    """Return the calls in `path`, in the order in which they were received; a torn last line is left out."""
    calls: dict[str, ProviderCall] = {}
    for line in path.read_bytes().split(b"\n")[:-1]:
        facts = json.loads(line)
        if facts["event"] == "received":
            calls[facts["id"]] = _received(facts)
        else:
            calls[facts["id"]] = _answered(calls[facts["id"]], facts)
    return list(calls.values())


def _received(facts: dict[str, Any]) -> ProviderCall:
    return ProviderCall(
        id=facts["id"],
        case=facts["case"],
        method=facts["method"],
        path=facts["path"],
        model=facts["model"],
        request_bytes=facts["bytes"],
        stream=facts["stream"],
        include_usage=facts["include_usage"],
    )


def _answered(call: ProviderCall, facts: dict[str, Any]) -> ProviderCall:
    return replace(
        call, answered=True, status=facts["status"], complete=facts["complete"], usage=facts["usage"]
    )

"""Answers that the gateway gives itself: refusals that agents take for final, and errors that say what to do.

A refusal's status is the one that stops real agents, by dialect (measured, see docs/decisions/0043): chat completions
403, Responses 429 with `insufficient_quota`, Messages 403; always `x-should-retry: false`, never Retry-After.
"""

import json
from dataclasses import dataclass
from typing import Any

_PHRASES = {
    204: b"No Content",
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    404: b"Not Found",
    408: b"Request Timeout",
    405: b"Method Not Allowed",
    421: b"Misdirected Request",
    426: b"Upgrade Required",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
    501: b"Not Implemented",
    502: b"Bad Gateway",
    505: b"HTTP Version Not Supported",
}

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and a body of our own; `headers` are whole lines with CRLF."""

    status: int
    body: bytes = b""
    headers: bytes = b""

    def to_bytes(self, *, close: bool, head_only: bool = False) -> bytes:
        """Return the whole message; `close` announces that the connection ends behind it."""
        lines = b"HTTP/1.1 %d %b\r\n" % (self.status, _PHRASES[self.status])
        if self.status != 204:
            lines += b"content-type: application/json\r\ncontent-length: %d\r\n" % len(self.body)
        lines += self.headers + (b"connection: close\r\n" if close else b"")
        return lines + b"\r\n" + (b"" if head_only else self.body)


def error(status: int, code: str, message: str, *, headers: bytes = b"") -> Answer:
    """Return an error in the shape that OpenAI's clients read."""
    facts = {"message": message, "type": "kt_gateway", "param": None, "code": code}
    return Answer(status, json.dumps({"error": facts}).encode(), headers)


def final(path: bytes, code: str, message: str) -> Answer:
    """Return a refusal that the dialect of `path` takes for final.

    Args:
        path: the path that was asked for.
        code: what is wrong, in one word.
        message: what is wrong, and what to do.
    """
    if path.endswith(b"/responses"):
        facts = {
            "message": message,
            "type": "insufficient_quota",
            "param": None,
            "code": "insufficient_quota",
        }
        body: dict[str, Any] = {"error": {**facts, "reason": code}}
        return Answer(429, json.dumps(body).encode(), b"x-should-retry: false\r\n")
    if path.endswith((b"/messages", b"/messages/count_tokens")):
        body = {"type": "error", "error": {"type": "permission_error", "message": message, "reason": code}}
        return Answer(403, json.dumps(body).encode(), b"x-should-retry: false\r\n")
    return error(403, code, message, headers=b"x-should-retry: false\r\n")

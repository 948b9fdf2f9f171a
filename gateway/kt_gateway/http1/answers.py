"""Answers that the gateway gives itself: refusals that agents take for final, and errors that say what to do.

A refusal is the one that stops real agents, by dialect (`decode/refusal.py`); always `x-should-retry: false`, never
Retry-After.
"""

import json
from dataclasses import dataclass

from kt_gateway.decode import refusal
from kt_gateway.decode.table import dialect_of

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
    dialect = dialect_of("POST", path.decode("latin-1"))
    refused = (dialect.refuse if dialect is not None else refusal.openai)(code, message)
    return Answer(refused.status, json.dumps(refused.body).encode(), b"x-should-retry: false\r\n")

"""What a request asks for, read from its body; and the one change we make to it.

`stream_options.include_usage` is spliced into a streamed request that does not say, so that the answer can be measured.
All other bytes stay as they came. Law: where anything about the body is odd (coded, not JSON, not UTF-8, a BOM, a
member given twice), it is forwarded untouched and nothing is withheld from the answer.
"""

import json
from dataclasses import dataclass
from typing import Any

from kt_gateway import coding
from kt_gateway.decode.finding import text
from kt_gateway.decode.members import Members
from kt_ledger.values import U64_MAX

PARSE_LIMIT_BYTES = 1 << 20
"""Larger bodies (images, mostly) are walked over instead of parsed: half a millisecond a megabyte, no copy."""

DECODED_LIMIT_BYTES = 32 << 20

_MEMBERS = frozenset({"model", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n"})
_ASK = b'"stream_options":{"include_usage":true},'


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the caller asked for; None where the body does not say or could not be read."""

    model: str | None = None
    stream: bool | None = None
    max_tokens: int | None = None
    choices: int | None = None


NOTHING_KNOWN = Asked()


def read(body: bytes, *, content_type: str, content_encoding: str, inject: bool) -> tuple[Asked, bytes]:
    """Return what a chat request asks for, and the bytes to forward: `body` itself unless usage was asked for."""
    try:
        plain = coding.whole(body, content_encoding=content_encoding, limit_bytes=DECODED_LIMIT_BYTES)
    except (coding.Undecodable, coding.TooMuch):
        return NOTHING_KNOWN, body
    document = _members_of(plain)
    if document is None:
        return NOTHING_KNOWN, body
    asked = Asked(
        model=text(document.get("model")),
        stream=_flag(document.get("stream")),
        max_tokens=_count(document.get("max_completion_tokens")) or _count(document.get("max_tokens")),
        choices=_count(document.get("n")),
    )
    may_change = inject and plain is body and (not content_type or content_type.endswith("json"))
    if may_change and document.get("stream") is True:
        return asked, _asking(body, document)
    return asked, body


def _members_of(plain: bytes) -> dict[str, Any] | None:
    if len(plain) > PARSE_LIMIT_BYTES:
        members = Members(_MEMBERS)
        members.feed(plain)
        return members.document() if members.complete else None
    try:
        document = json.loads(plain.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _asking(body: bytes, document: dict[str, Any]) -> bytes:
    options = document.get("stream_options")
    if "stream_options" in document and (not isinstance(options, dict) or "include_usage" in options):
        return body
    if options is None and body.count(b'"stream"') == 1:
        return _splice(body, body.index(b"{") + 1, _ASK)
    members = Members(_MEMBERS)
    members.feed(body)
    if not members.complete or members.repeated or members.overlong:
        return body
    if options is None:
        return _splice(body, body.index(b"{") + 1, _ASK)
    start, end = members.spans["stream_options"]
    inside = body.index(b"{", start, end) + 1
    return _splice(body, inside, b'"include_usage":true,' if options else b'"include_usage":true')


def _splice(body: bytes, at: int, addition: bytes) -> bytes:
    return b"".join((body[:at], addition, body[at:]))


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= U64_MAX else None

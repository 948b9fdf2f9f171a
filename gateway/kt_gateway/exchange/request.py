"""What a request asks for, read from its path and its body (JSON or a form); and the one change we make to it.

`stream_options.include_usage` is spliced into a streamed request that does not say, so that the answer can be measured.
All other bytes stay as they came. Law: where anything about the body is odd (coded, not JSON, not UTF-8, a BOM, a
member given twice), it is forwarded untouched and nothing is withheld from the answer.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from kt_gateway import coding
from kt_gateway.decode.dialect import Asks
from kt_gateway.decode.finding import text
from kt_gateway.decode.members import Members
from kt_gateway.decode.shape import value_at
from kt_gateway.exchange import form
from kt_ledger.values import U64_MAX

PARSE_LIMIT_BYTES = 1 << 20
"""Larger bodies (images, mostly) are walked over instead of parsed: half a millisecond a megabyte, no copy."""

DECODED_LIMIT_BYTES = 32 << 20

_OPTIONS = frozenset({"stream", "stream_options"})
_ASK = b'"stream_options":{"include_usage":true},'
_FORM = "multipart/form-data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the caller asked for; None where the request does not say or could not be read."""

    model: str | None = None
    stream: bool | None = None
    max_tokens: int | None = None
    choices: int | None = None
    characters: int | None = None


NOTHING_KNOWN = Asked()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request's body and what its head says about it."""

    body: bytes
    content_type: str  # with its parameters
    content_encoding: str

    @property
    def media_type(self) -> str:
        """The content type without its parameters."""
        return self.content_type.partition(";")[0].strip().lower()


def from_path(asks: Asks, path: str) -> Asked:
    """Return what the path alone says."""
    found = asks.model_in_path.search(path) if asks.model_in_path is not None else None
    return Asked(model=text(unquote(found[1])) if found else None, stream=asks.streams)


def read(
    sent: Sent, asks: Asks, *, known: Asked, inject: Callable[[str | None], bool]
) -> tuple[Asked, bytes]:
    """Return what a request asks for, and the bytes to forward: its body itself unless usage was asked for.

    Args:
        sent: the request.
        asks: where its dialect says things.
        known: what its path says.
        inject: whether usage may be asked for, of which model.
    """
    body = sent.body
    try:
        plain = coding.whole(body, content_encoding=sent.content_encoding, limit_bytes=DECODED_LIMIT_BYTES)
    except (coding.Undecodable, coding.TooMuch):
        return known, body
    if sent.media_type == _FORM:
        return _asked(asks, form.fields(plain, sent.content_type), known), body
    document = _members_of(plain, asks)
    if document is None:
        return known, body
    asked = _asked(asks, document, known)
    may_change = plain is body and (not sent.media_type or sent.media_type.endswith("json"))
    if may_change and document.get("stream") is True and inject(asked.model):
        return asked, _asking(body, document)
    return asked, body


def _wanted(asks: Asks) -> frozenset[str]:
    paths = [asks.model, asks.stream, asks.choices, *asks.max_tokens]
    paths += [asks.characters] if asks.characters else []
    return _OPTIONS.union(path[0] for path in paths)


def _asked(asks: Asks, document: dict[str, Any], known: Asked) -> Asked:
    limits = (_count(value_at(document, path)) for path in asks.max_tokens)
    stream = _flag(value_at(document, asks.stream))
    said = value_at(document, asks.characters) if asks.characters else None
    return Asked(
        model=text(value_at(document, asks.model)) or known.model,
        stream=known.stream if stream is None else stream,
        max_tokens=next((limit for limit in limits if limit), None),
        choices=_count(value_at(document, asks.choices)),
        characters=len(said) if isinstance(said, str) else None,
    )


def _members_of(plain: bytes, asks: Asks) -> dict[str, Any] | None:
    if len(plain) > PARSE_LIMIT_BYTES:
        members = Members(_wanted(asks))
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
    members = Members(_OPTIONS)
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

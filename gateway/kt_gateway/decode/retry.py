"""When a provider that refused a call for now said that one may come back: read off an answer's headers and body.

Each way of saying it is a line of data with the page that describes it. What somebody says in so many words
(`retry-after`) wins over what follows from a body, and that over the windows whose ends are listed with every answer:
of these only the used up ones matter, where it is known which they are, and the latest of them. Nothing here raises.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kt_gateway import coding
from kt_gateway.decode import moments
from kt_gateway.decode.moments import Moment

LIMITED = frozenset({429, 503, 529})
"""Too Many Requests, Service Unavailable (RFC 9110 section 15.6.4, RFC 6585 section 4), and Anthropic's overloaded."""
BODY_LIMIT_BYTES = 16 << 10
HORIZON_NS = 400 * 86400 * 10**9
"""What is said to be further away than a year and a month is not believed."""

Headers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Said:
    """A header that says when to come back."""

    name: str
    read: Callable[[str, Moment], int | None]
    page: str


@dataclass(frozen=True, slots=True)
class Window:
    """A family of headers that say when windows end; what stands between `prefix` and `suffix` names the window."""

    prefix: str
    suffix: str
    left_prefix: str  # of the header that says how much of the window is left
    left_suffix: str
    page: str


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a JSON body that says when to come back; `*` stands for each item of a list, names ignore case."""

    path: tuple[str, ...]
    read: Callable[[str, Moment], int | None]
    page: str


SAID: tuple[Said, ...] = (
    Said("retry-after-ms", moments.milliseconds, "https://github.com/openai/openai-python#retries"),
    Said("retry-after", moments.seconds_or_date, "https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3"),
)
MEMBERS: tuple[Member, ...] = (
    # ChatGPT plans behind Codex: seconds since 1970, and, of older servers, seconds from now.
    Member(("error", "resets_at"), moments.by_shape, "https://github.com/openai/codex"),
    Member(("error", "resets_in_seconds"), moments.seconds_or_date, "https://github.com/openai/codex"),
    Member(
        ("error", "metadata", "headers", "x-ratelimit-reset"),
        moments.by_shape,
        "https://openrouter.ai/docs/api-reference/limits",
    ),
    # google.rpc.RetryInfo, a Duration as JSON writes it ("34.07s").
    Member(
        ("error", "details", "*", "retrydelay"),
        moments.by_shape,
        "https://cloud.google.com/apis/design/errors#error_details",
    ),
)
WINDOWS: tuple[Window, ...] = (
    Window(
        "x-ratelimit-reset-",
        "",
        "x-ratelimit-remaining-",
        "",
        "https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers",
    ),
    Window(
        "anthropic-ratelimit-",
        "-reset",
        "anthropic-ratelimit-",
        "-remaining",
        "https://docs.anthropic.com/en/api/rate-limits#response-headers",
    ),
    Window(
        "x-ratelimit-reset",
        "",
        "x-ratelimit-remaining",
        "",
        "https://openrouter.ai/docs/api-reference/limits",
    ),
    Window(
        "ratelimit-reset",
        "",
        "ratelimit-remaining",
        "",
        "https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-03",
    ),
)


FINAL = frozenset({"insufficient_quota", "enforced_spend_limit_reached"})
"""Codes of refusals that time alone does not lift; the windows listed with them say nothing of when to come back.

https://platform.openai.com/docs/guides/error-codes, https://docs.anthropic.com/en/api/rate-limits#spend-limits
"""
_CODES = (("error", "code"), ("error", "type"), ("error", "details", "error_code"))


class RetryReader:
    """Reads one refusing answer: its head at first, its body as it comes."""

    def __init__(self, headers: tuple[tuple[bytes, bytes], ...], *, at_ns: int) -> None:
        """Take the head, and the wall-clock time of its arrival."""
        self._headers = {
            name.decode("latin-1").lower(): value.decode("latin-1").strip() for name, value in headers
        }
        self._moment = Moment(at_ns, moments.http_date(self._headers.get("date", "")))
        self._body = bytearray()
        self._seen_bytes = 0

    def data(self, data: bytes) -> None:
        """Take bytes of the body as they came; those beyond the bound are not looked at."""
        self._seen_bytes += len(data)
        self._body += data[: BODY_LIMIT_BYTES - len(self._body)]

    def at_ns(self) -> int | None:
        """Return the wall-clock time to come back at, None where nothing credible was said."""
        try:
            document = self._document()
            found = self._said() or self._in_body(document)
            if found is not None or any(code in FINAL for path in _CODES for code in _texts(document, path)):
                return found
            return self._window()
        except Exception:
            return None  # whatever a provider writes: an unread hint, never a failed call

    def _credible(self, at_ns: int | None) -> int | None:
        now_ns = self._moment.now_ns
        return at_ns if at_ns is not None and now_ns <= at_ns <= now_ns + HORIZON_NS else None

    def _said(self) -> int | None:
        found = (self._credible(said.read(self._headers.get(said.name, ""), self._moment)) for said in SAID)
        return next((at_ns for at_ns in found if at_ns is not None), None)

    def _in_body(self, document: Any) -> int | None:
        for member in MEMBERS:
            read = [self._credible(member.read(text, self._moment)) for text in _texts(document, member.path)]
            if known := [at_ns for at_ns in read if at_ns is not None]:
                return max(known)
        return None

    def _document(self) -> Any:
        """Return the body as JSON; None where it is none, or not whole."""
        if self._seen_bytes > len(self._body):
            return None
        body = bytes(self._body)
        chain = coding.chain(self._headers.get("content-encoding", ""))
        if chain is not None:
            plain = bytearray()
            for piece in chain.feed(body):
                plain += piece
                if len(plain) > BODY_LIMIT_BYTES:
                    return None
            body = bytes(plain)
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            return None
        # Google wraps the errors of its streaming calls in a list.
        return document[0] if isinstance(document, list) and document else document

    def _window(self) -> int | None:
        used_up: list[int] = []
        others: list[int] = []
        for name, value in self._headers.items():
            left = self._left(name)
            at_ns = self._credible(moments.by_shape(value, self._moment)) if left is not None else None
            if at_ns is not None:
                (used_up if left == "0" else others).append(at_ns)
        return max(used_up or others, default=None)

    def _left(self, name: str) -> str | None:
        """Return what is left of the window whose end `name` tells, "" where that is not said; None: no such name."""
        for window in WINDOWS:
            inner = name[len(window.prefix) : len(name) - len(window.suffix)]
            if name == window.prefix + inner + window.suffix and bool(inner) == _is_family(window):
                return self._headers.get(window.left_prefix + inner + window.left_suffix, "")
        return None


def _is_family(window: Window) -> bool:
    return window.prefix.endswith("-")


def _texts(node: Any, path: tuple[str, ...]) -> Iterator[str]:
    """Yield the numbers and strings at `path`, as text."""
    if not path:
        if isinstance(node, str | int | float) and not isinstance(node, bool):
            yield str(node)
        return
    if path[0] == "*":
        for item in node if isinstance(node, list) else ():
            yield from _texts(item, path[1:])
    elif isinstance(node, dict):
        for name, value in node.items():
            if name.lower() == path[0]:
                yield from _texts(value, path[1:])

"""HTTP/1.1 with JSON as the engine speaks it, without a socket: bytes out, bytes in, documents.

`http.client` would do it too, and would cost more than the rest of `kt agent list` (it brings the e-mail parser); and
it blocks. One connection a call (`connection: close`). Answers are sized, chunked or end with their connection
(RFC 9112 section 6).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kt_client import errors
from kt_ledger import exit_codes
from kt_ledger.version import VERSION

ANSWER_TIMEOUT_S = 60.0
VERSION_HEADER = "kt-version"
SWITCHING = 101
_HEAD_LIMIT_BYTES = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to the engine, as data: both clients send the same.

    `target` is path and query, quoted. `about` is the agent that it is about, where it is about one: in a state
    directory that was never used there is none. `unused` is the answer there for a question about all of them, and
    where it is a `KtError`, the refusal. `away` is the answer where no engine runs and none shall be started for this.
    `upgrade` names the protocol that the connection shall be used for afterwards (RFC 9110 section 7.8).
    """

    method: str
    target: str
    body: Any = None
    timeout_s: float | None = ANSWER_TIMEOUT_S
    about: str | None = None
    unused: Any = None
    away: Any = None
    upgrade: str | None = None

    @property
    def changes_nothing(self) -> bool:
        """Whether it may be asked again where the engine died over it."""
        return self.method == "GET"

    def encoded(self) -> bytes:
        """Return the bytes to send."""
        # Variables may hold any bytes: they travel as surrogates (PEP 383).
        content = b"" if self.body is None else json.dumps(self.body).encode("utf-8", "surrogateescape")
        lines = (
            f"{self.method} {self.target} HTTP/1.1",
            "host: engine",
            *(
                ("connection: close",)
                if self.upgrade is None
                else ("connection: upgrade", f"upgrade: {self.upgrade}")
            ),
            f"content-length: {len(content)}",
            "content-type: application/json",
            f"{VERSION_HEADER}: {VERSION}",
        )
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


class Answer:
    """One answer, understood as its bytes arrive: `receive` them, until `ended`; b"" is the connection's end."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.ended = False
        self._buffer = b""
        self._left = 0
        self._step: Callable[[], bytes | None] = self._head

    def receive(self, data: bytes) -> bytes:
        """Return what of the body came with these bytes. Raises EngineLost where the answer is cut or none."""
        if not data:
            self._connection_ended()
            return b""
        self._buffer += data
        body = b""
        while not self.ended and (piece := self._step()) is not None:
            body += piece
        return body

    def _connection_ended(self) -> None:
        if self._step != self._until_the_end:
            lacking = f"the answer lacks {self._left} bytes" if self._left else "the connection ended"
            raise errors.lost(OSError(lacking))
        self.ended = True

    def _head(self) -> bytes | None:
        if b"\r\n\r\n" not in self._buffer:
            if len(self._buffer) > _HEAD_LIMIT_BYTES:
                raise errors.lost(OSError("the head of the answer has no end"))
            return None
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        parts = first.split(" ", 2)
        if len(parts) < 2 or not parts[0].startswith("HTTP/") or not parts[1].isdecimal():
            raise errors.lost(OSError(f"{first[:60]!r} is no HTTP answer"))
        self.status = int(parts[1])
        self.headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
        }
        self._choose_framing()
        return b""

    @property
    def beyond(self) -> bytes:
        """What came behind the end of the answer."""
        return self._buffer

    def _choose_framing(self) -> None:
        if self.status == SWITCHING:
            self.ended = True  # what follows is another protocol's
        elif "chunked" in self.headers.get("transfer-encoding", "").lower():
            self._step = self._chunk_size
        elif (length := self.headers.get("content-length")) is not None:
            self._left = _number(length, 10)
            self._step = self._sized
            self.ended = not self._left
        else:
            self._step = self._until_the_end

    def _until_the_end(self) -> bytes | None:
        data, self._buffer = self._buffer, b""
        return data or None

    def _sized(self) -> bytes | None:
        data = self._taken()
        self.ended = not self._left
        return data or None

    def _chunk_size(self) -> bytes | None:
        line, found, rest = self._buffer.partition(b"\r\n")
        if not found:
            return None
        self._buffer = rest
        self._left = _number(line.partition(b";")[0].decode("latin-1"), 16)
        self.ended = not self._left  # what may follow the last chunk are trailers: nobody here reads them
        self._step = self._chunk
        return b""

    def _chunk(self) -> bytes | None:
        if self._left:
            return self._taken() or None
        if len(self._buffer) < 2:
            return None
        self._buffer = self._buffer[2:]
        self._step = self._chunk_size
        return b""

    def _taken(self) -> bytes:
        data, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
        self._left -= len(data)
        return data


class Conversation:
    """One request and its answer: a document, or, where `lines`, a line of NDJSON at a time."""

    def __init__(self, *, lines: bool = False) -> None:
        self._answer = Answer()
        self._lines = lines
        self._kept = b""

    @property
    def ended(self) -> bool:
        """Whether the whole answer is here."""
        return self._answer.ended

    @property
    def status(self) -> int:
        """The answer's status, 0 until its head is here."""
        return self._answer.status

    @property
    def headers(self) -> dict[str, str]:
        """The answer's headers, by their names in lower case."""
        return self._answer.headers

    @property
    def beyond(self) -> bytes:
        """What came behind the head of an answer that upgrades its connection."""
        return self._answer.beyond

    @property
    def version(self) -> str | None:
        """The version of the engine that answers, once its head is here; None from one that does not say."""
        return self._answer.headers.get(VERSION_HEADER)

    def receive(self, data: bytes) -> list[Any]:
        """Take what arrived; return the lines that are whole now (errors as `Answer.receive`)."""
        self._kept += self._answer.receive(data)
        if not self._lines or self._answer.status >= 300:
            return []
        *whole, self._kept = self._kept.split(b"\n")
        if self.ended:
            whole, self._kept = [*whole, self._kept], b""
        return [_parsed(line) for line in whole if line.strip()]

    def document(self) -> Any:
        """Return the answer's document. Raises the refusal that it is, where it is one."""
        document = _parsed(self._kept) if self._kept.strip() else {}
        if self._answer.status < 300:
            return document
        refusal = document.get("error") if isinstance(document, dict) else None
        facts = refusal if isinstance(refusal, dict) else {}
        said = f"the engine answered {self._answer.status}: {self._kept[:200]!r}"
        raise errors.refusal(
            str(facts.get("message", said)),
            exit_code=int(facts.get("exit_code", exit_codes.FAILED)),
            code=str(facts.get("code", "failed")),
        )


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise errors.lost(OSError(f"{content[:60]!r} is no JSON")) from error


def _number(text: str, radix: int) -> int:
    try:
        number = int(text, radix)
    except ValueError:
        number = -1
    if number < 0:
        raise errors.lost(OSError(f"{text[:20]!r} is no length"))
    return number

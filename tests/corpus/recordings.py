"""Recorded answers of real providers, where they stand beside the repository, and how they are put to the meter."""

import base64
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.gateway.exchange.feeding import Heard, cut, feed, new_exchange

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

EDGE_BYTES = 8 << 10
"""How much of a large body, at each end, is fed byte by byte; all of it would take ten minutes."""

Key = tuple[str, int]
"""A source and a line of it, from 0."""

PATHS = {
    "openai.chat": "/v1/chat/completions",
    "openai.completions": "/v1/completions",
    "openai.responses": "/v1/responses",
    "openai.embeddings": "/v1/embeddings",
    "openai.assistants": "/v1/threads/thread_1/runs",
    "anthropic.messages": "/v1/messages",
    "gemini.interactions": "/v1beta/interactions",
    "bedrock.converse": "/model/m/converse",
    "cohere": "/v2/chat",
    "rerank": "/v1/rerank",
}
"""Where a recording without the path of its request was made; by API."""

_METERED_AS = (
    # A GET never meters; what it was answered with is read as the answer to the POST that it repeats.
    (re.compile(r"(/responses)/resp_[^/]+$"), r"\1"),
    (re.compile(r"(/runs)/run_[^/]+$"), r"\1"),
)
_BEGUN = re.compile(
    rb"(?:event: ?(?:message_start|response\.created)\r?\n)?"
    rb"data: ?\{[^\n]*?\"type\": ?\"(?:message_start|response\.created)\""
)
"""Where a stream begins in a recording that joins several."""


def records(where: str = "*") -> Iterator[tuple[Key, dict[str, Any]]]:
    """Yield every record with its key."""
    for file in sorted(CORPUS.glob(f"{where}.jsonl.gz")):
        with gzip.open(file, "rt") as lines:
            for number, line in enumerate(lines):
                yield (file.name.removesuffix(".jsonl.gz"), number), json.loads(line)


def path_of(record: dict[str, Any]) -> str:
    """Return the path that the record's answer is read under."""
    path = urlsplit(record["url"]).path or ""
    if path.endswith("/fixture") or record["url"].startswith(":"):
        path = _known_path(record)
    for asked, metered in _METERED_AS:
        path = asked.sub(metered, path)
    return path


def _known_path(record: dict[str, Any]) -> str:
    api = record["api"]
    if api == "gemini.generate":
        method = "streamGenerateContent" if record["stream"] else "generateContent"
        return f"/v1beta/models/m:{method}"
    if api == "other":
        return "/v1/audio/transcriptions" if "prompt_audio_seconds" in record["usage_raw"] else "/v1/rerank"
    if api == "cohere" and "search_units" in json.dumps(record["usage_raw"]):
        return "/v2/rerank"
    return PATHS[api]


def body_of(record: dict[str, Any]) -> bytes:
    """Return the body as it was recorded; of several streams that were joined, the last (which was counted)."""
    body = base64.b64decode(record["body_b64"])
    if "several-streams-joined" in record["flags"]:
        body = body[[found.start() for found in _BEGUN.finditer(body)][-1] :]
    return body


def read(key: Key, record: dict[str, Any], way: str) -> tuple[bytes, Heard]:
    """Put a recorded answer to the meter, cut in one of four ways; return its bytes and what was said."""
    body = body_of(record)
    given = {name.lower(): value for name, value in record["response_headers"].items()}
    headers = {name: given[name] for name in ("content-type",) if given.get(name)} or {"x": "y"}
    if record["body_encoding"] not in ("identity", "", None):
        headers["content-encoding"] = record["body_encoding"]
    # The recorded caller asked for usage or could not have got it: nothing of ours to withhold.
    pieces = cut(body, way, seed=zlib.crc32(repr(key).encode()))
    if way == "byte by byte" and len(body) > 2 * EDGE_BYTES:
        middle = body[EDGE_BYTES:-EDGE_BYTES]
        pieces = [*cut(body[:EDGE_BYTES], way), middle, *cut(body[-EDGE_BYTES:], way)]
    heard = feed(
        new_exchange(path=path_of(record), inject_usage=lambda model: False),
        pieces,
        status=record["status"],
        headers=headers,
        marks_last=way == "whole",
    )
    return body, heard

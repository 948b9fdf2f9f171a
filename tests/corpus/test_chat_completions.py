"""Recorded answers of real providers, read four ways; the recordings stay where they are, beside the repository.

Each record says what its provider reports (`expected`, see the corpus' own README). What we deliberately read otherwise
is listed by record in `DEVIATIONS`, with the reason; docs/decisions/0031-reading-usage.md says more.
"""

import base64
import gzip
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.exchange.feeding import WAYS, Heard, cut, feed, new_exchange

from kt_ledger.values import Counts

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
BYTE_BY_BYTE_LIMIT_BYTES = (20 if "KT_CHAOS" in os.environ else 2) << 10
CORPUS_WAYS = WAYS if "KT_CHAOS" in os.environ else ("whole", "byte by byte", "random cuts")

Key = tuple[str, int]

DEVIATIONS: dict[Key, dict[str, Any]] = {
    # Thinking tokens that only the total shows are counted: reported, and paid for, as output.
    ("pydantic__pydantic-ai", 424): {"reasoning_tokens": 62},
    ("pydantic__pydantic-ai", 425): {"reasoning_tokens": 28},
    # Reasoning 11 inside completion 10: a part cannot exceed its whole. The stream holds an error object.
    ("pydantic__pydantic-ai", 476): {"reasoning_tokens": 10, "reason": "error_in_body"},
    # Details under the singular name prompt_token_details hold explicit zeros.
    ("traceloop__openllmetry", 176): {"cached_input_tokens": 0, "reasoning_tokens": 0},
}
"""By source and line (from 0): the fields that differ from `expected`, and what we say instead."""


def records(where: str = "*") -> Iterator[tuple[Key, dict[str, Any]]]:
    for file in sorted(CORPUS.glob(f"{where}.jsonl.gz")):
        with gzip.open(file, "rt") as lines:
            for number, line in enumerate(lines):
                record = json.loads(line)
                if record["api"] == "openai.chat" or (
                    record["api"] is None and "/chat/completions" in record["url"]
                ):
                    yield (file.name.removesuffix(".jsonl.gz"), number), record


needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside this repository")


def read(key: Key, record: dict[str, Any], way: str) -> tuple[bytes, Heard]:
    body = base64.b64decode(record["body_b64"])
    given = {name.lower(): value for name, value in record["response_headers"].items()}
    headers = {name: given[name] for name in ("content-type",) if given.get(name)} or {"x": "y"}
    if record["body_encoding"] not in ("identity", "", None):
        headers["content-encoding"] = record["body_encoding"]
    if way == "byte by byte" and len(body) > BYTE_BY_BYTE_LIMIT_BYTES:
        way = "random cuts"
    pieces = cut(body, way, seed=zlib.crc32(repr(key).encode()))
    # The recorded caller asked for usage or could not have got it: nothing of ours to withhold.
    heard = feed(
        new_exchange(inject_usage=False),
        pieces,
        status=record["status"],
        headers=headers,
        marks_last=way == "whole",
    )
    return body, heard


def said(heard: Heard) -> dict[str, Any]:
    counts = Counts(**heard.close["counts"])
    return {
        "input_tokens": counts.input_total,
        "output_tokens": counts.output_total,
        "cached_input_tokens": counts.cache_read,
        "reasoning_tokens": counts.reasoning,
        "model": heard.close.get("model"),
        "stream": heard.close["stream"],
        "reason": heard.close.get("reason"),
    }


def wanted(key: Key, record: dict[str, Any]) -> dict[str, Any]:
    """Map what the provider reports to our units: output as a whole includes reasoning, on top or not."""
    expected = {
        name: record["expected"][name] for name in ("input_tokens", "cached_input_tokens", "reasoning_tokens")
    }
    expected |= {"model": record["expected"]["model"], "stream": record["stream"], "reason": None}
    expected |= DEVIATIONS.get(key, {})
    output, total = record["expected"]["output_tokens"], record["expected"]["total_tokens"]
    on_top = (
        (expected["reasoning_tokens"] or 0) if total != record["expected"]["input_tokens"] + output else 0
    )
    return expected | {"output_tokens": output + on_top}


def passes_untouched(body: bytes, heard: Heard) -> bool:
    return (body, 1, True) == (
        heard.body,
        heard.settled,
        heard.cleanly,
    ) and b"data: [DONE]\n" not in heard.before


@needs_corpus
@pytest.mark.parametrize("way", CORPUS_WAYS)
def test_recorded_answers_are_read_as_their_providers_report_them(way: str) -> None:
    wrong = []
    count = 0

    for key, record in records():
        if key[0] == "no-usage":
            continue
        count += 1
        body, heard = read(key, record, way)
        if wanted(key, record) != said(heard) or not passes_untouched(body, heard):
            wrong.append(
                (key, record["provider"], wanted(key, record), said(heard), passes_untouched(body, heard))
            )

    assert wrong == []
    assert count > 500


@needs_corpus
@pytest.mark.parametrize("way", CORPUS_WAYS)
def test_recorded_answers_without_usage_are_unknown_with_a_reason(way: str) -> None:
    wrong = []
    count = 0

    for key, record in records("no-usage"):
        count += 1
        body, heard = read(key, record, way)
        in_body = record["status"] < 400 and b'"error"' in base64.b64decode(record["body_b64"])
        reason = "provider_error" if record["status"] >= 400 else "error_in_body" if in_body else "no_usage"
        got = (heard.close["completeness"], heard.close["reason"], heard.close["counts"])
        if ("unknown", reason, {}) != got or not passes_untouched(body, heard):
            wrong.append((key, record["url"], reason, got))

    assert wrong == []
    assert count > 40

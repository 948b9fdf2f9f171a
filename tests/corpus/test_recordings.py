"""Recorded answers of real providers, of every API, read four ways and compared with what each provider reports.

`expected` is mapped to our disjoint units by rule. What we deliberately read otherwise is listed by record, with the
reason; docs/decisions/0140-one-table-of-dialects.md says more. The recordings stay where they are.
"""

import random
from collections import Counter
from typing import Any

import pytest
from tests.corpus.recordings import CORPUS, Key, path_of, read, records
from tests.gateway.exchange.feeding import WAYS, Heard

from kt_gateway.decode.table import dialect_of
from kt_ledger.values import Counts

SAMPLE = 200
SAMPLED_LIMIT_BYTES = 6_000
BESIDE_CACHE = ("anthropic.messages", "bedrock.converse")
ON_TOP = ("gemini.generate", "gemini.interactions")

needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside this repository")

_COMPACTION = "passes that compact the context are billed and not in the sums (Anthropic, Compaction, usage)"
_ALL_ZERO = (
    "text or calls were generated, and all counts are 0: nothing was measured (flags input-zero, output-zero)"
)
DEVIATIONS: dict[Key, tuple[dict[str, Any], str]] = {
    ("pydantic__pydantic-ai", 424): (
        {"reasoning_tokens": 62, "output_tokens": 74},
        "thinking that only the total shows is generated and paid for (Google, OpenAI compatibility)",
    ),
    ("pydantic__pydantic-ai", 425): (
        {"reasoning_tokens": 28, "output_tokens": 34},
        "thinking that only the total shows is generated and paid for (Google, OpenAI compatibility)",
    ),
    ("pydantic__pydantic-ai", 476): (
        {"reasoning_tokens": 10},
        "reasoning 11 of completion 10: a part cannot exceed its whole (flag reasoning-gt-output)",
    ),
    ("traceloop__openllmetry", 176): (
        {"cached_input_tokens": 0, "reasoning_tokens": 0},
        "details under singular names hold explicit zeros (flags key:*_token_details)",
    ),
    ("pydantic__pydantic-ai", 184): ({"input_tokens": 55416, "output_tokens": 133}, _COMPACTION),
    ("pydantic__pydantic-ai", 187): ({"input_tokens": 55425, "output_tokens": 136}, _COMPACTION),
    ("pydantic__pydantic-ai", 188): (
        {"input_tokens": 55377, "output_tokens": 91, "cached_input_tokens": 55096},
        _COMPACTION,
    ),
    ("vercel__ai", 36): ({"input_tokens": 60997, "output_tokens": 3341}, _COMPACTION),
    ("vercel__ai", 37): ({"input_tokens": 61067, "output_tokens": 1912}, _COMPACTION),
    ("vercel__ai", 38): (
        {"model": "claude-opus-4-8"},
        "the model asked refused and another one answered: usage.iterations names it as fallback_message",
    ),
    ("vercel__ai", 138): (
        {"output_tokens": 25},
        "responseTokenCount is the output of Google's Live API (UsageMetadata of BidiGenerateContent)",
    ),
    ("vercel__ai", 207): (
        {"input_tokens": 12},
        "Voyage's rerank reports a total of input (reference, Rerankers); so does openllmetry 174",
    ),
    **{
        key: (
            dict.fromkeys(("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens")),
            _ALL_ZERO,
        )
        for key in (
            ("DataDog__dd-trace-py", 162),
            ("pydantic__pydantic-ai", 456),
            ("vercel__ai", 197),
            ("vercel__ai", 198),
            ("local__real-servers", 43),
        )
    },
}
"""By record: the fields that differ from what it expects, what we say instead, and why."""


def said(heard: Heard) -> dict[str, Any]:
    counts = Counts(**heard.close["counts"])
    return {
        "input_tokens": counts.input_total,
        "output_tokens": counts.output_total,
        "cached_input_tokens": counts.cache_read,
        "reasoning_tokens": counts.reasoning,
        "model": heard.close.get("model"),
        "stream": heard.close["stream"],
    }


def wanted(key: Key, record: dict[str, Any]) -> dict[str, Any]:
    """Map what the provider reports to our units: sums as wholes, whatever the provider counts beside them."""
    expected, usage = record["expected"], record["usage_raw"]
    names = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "model")
    mapped = {name: expected[name] for name in names} | {"stream": record["stream"]}
    if record["api"] in BESIDE_CACHE and expected["input_tokens"] is not None:
        mapped["input_tokens"] = record["extra"]["input_incl_cache"]
    if mapped["input_tokens"] is not None:
        mapped["input_tokens"] += record["extra"].get("tool_use_prompt_tokens", 0)
        mapped["input_tokens"] += usage.get("total_tool_use_tokens", 0)
    if _reasoning_is_on_top(record) and expected["reasoning_tokens"] is not None:
        mapped["output_tokens"] = (expected["output_tokens"] or 0) + expected["reasoning_tokens"]
    if record["api"] == "other":
        # `expected` leaves details out here that the record's own usage_raw holds.
        mapped["cached_input_tokens"] = _detail(usage, "input_tokens_details", "cached_tokens")
        mapped["reasoning_tokens"] = _detail(usage, "output_tokens_details", "reasoning_tokens")
    return mapped | DEVIATIONS.get(key, ({}, ""))[0]


def _reasoning_is_on_top(record: dict[str, Any]) -> bool:
    expected = record["expected"]
    if record["api"] in ON_TOP:
        return True
    if record["api"] in BESIDE_CACHE or None in (expected["total_tokens"], expected["input_tokens"]):
        return False
    return bool(expected["total_tokens"] != expected["input_tokens"] + (expected["output_tokens"] or 0))


def _detail(usage: dict[str, Any], details: str, name: str) -> int | None:
    value: int | None = (usage.get(details) or {}).get(name)
    return value


REASONS = {
    None,
    "usage_incomplete",  # the record's own flags say that a sum is missing
    "no_usage",
    "error_in_body",
    "no_terminal_event",
}


def _reason_is_right(record: dict[str, Any], key: Key, heard: Heard) -> bool:
    """Whether a record is exact, or its own flags say why it is not."""
    reason, flags = heard.close.get("reason"), record["flags"]
    if reason is None:
        return True
    if reason == "usage_incomplete":
        return "input-missing" in flags or "output-missing" in flags
    if reason == "no_usage":
        return {"input-missing", "output-missing"} <= set(flags) or key in DEVIATIONS
    if reason == "error_in_body":
        return "error-key" in flags
    return reason == "no_terminal_event" and key == ("vercel__ai", 138)  # one message of a conversation


def check(way: str, chosen: list[tuple[Key, dict[str, Any]]]) -> list[Any]:
    wrong: list[Any] = []
    for key, record in chosen:
        body, heard = read(key, record, way)
        passed = body == heard.body and heard.settled == 1
        if not passed or wanted(key, record) != said(heard) or not _reason_is_right(record, key, heard):
            wrong.append(
                (key, record["api"], wanted(key, record), said(heard), heard.close.get("reason"), passed)
            )
    return wrong


def measured() -> list[tuple[Key, dict[str, Any]]]:
    return [(key, record) for key, record in records() if key[0] != "no-usage"]


@needs_corpus
def test_every_recorded_answer_is_read_as_its_provider_reports_it() -> None:
    chosen = measured()

    assert [] == check("whole", chosen)
    assert len(chosen) > 1900


@needs_corpus
@pytest.mark.parametrize("way", WAYS[1:])
def test_recorded_answers_are_read_the_same_in_any_pieces(way: str) -> None:
    """A sample, the smaller ones; the long run takes them all."""
    small = [(key, record) for key, record in measured() if record["body_len"] < SAMPLED_LIMIT_BYTES]
    chosen = random.Random(way).sample(small, SAMPLE // 3 if way == "byte by byte" else SAMPLE)

    assert [] == check(way, chosen)


@pytest.mark.chaos
@pytest.mark.long
@pytest.mark.timeout(1800)
@needs_corpus
@pytest.mark.parametrize("way", WAYS)
def test_all_recorded_answers_are_read_the_same_in_any_pieces(way: str) -> None:
    assert [] == check(way, measured())


@needs_corpus
def test_no_more_than_one_in_a_hundred_is_read_otherwise() -> None:
    keys = {key for key, _ in records()}

    assert set(DEVIATIONS) <= keys
    assert len(DEVIATIONS) <= len(keys) / 100
    assert all(len(why) > 40 for _, why in DEVIATIONS.values())


@needs_corpus
def test_every_api_of_the_recordings_has_a_dialect() -> None:
    without = Counter(
        path_of(record) for key, record in measured() if dialect_of("POST", path_of(record)) is None
    )

    assert {} == without


@needs_corpus
@pytest.mark.parametrize("way", ("whole", "random cuts"))
def test_recorded_answers_without_usage_are_unknown_with_a_reason(way: str) -> None:
    wrong = []

    for key, record in records("no-usage"):
        body, heard = read(key, record, way)
        got = (heard.close["completeness"], heard.close["reason"], heard.close["counts"])
        if ("unknown", _why_without(record, body), {}) != got or body != heard.body or heard.settled != 1:
            wrong.append((key, record["url"], _why_without(record, body), got))

    assert wrong == []


def _why_without(record: dict[str, Any], body: bytes) -> str:
    if dialect_of("POST", path_of(record)) is None:
        return "unmetered_path"
    if record["status"] >= 400:
        return "provider_error"
    if b'"background":true' in body:
        return "deferred"
    if record["body_encoding"] == "identity" and b'"error"' in body and b'"error":null' not in body:
        return "error_in_body"
    if "no-done" in record["flags"] and "/completions" in record["url"] and b"finish_reason" not in body:
        return "no_terminal_event"  # Writer's stream of bare values
    return "no_usage"

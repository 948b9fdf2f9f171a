"""What a document of Amazon Bedrock's runtime says: Converse in its own words, InvokeModel in those of each model.

Converse's input excludes the cache; of InvokeModel's bodies Anthropic's exclude it too, and no other has one. The
model stands in the path only. Streams there are binary frames (application/vnd.amazon.eventstream).
Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_TokenUsage.html and API_runtime_CacheDetail
(read 2026-12-01); InvokeModel's bodies as they are in recordings of seven model families.
"""

import re
from typing import Any

from kt_gateway.decode import chat, messages, refusal
from kt_gateway.decode.dialect import Asks, Dialect
from kt_gateway.decode.finding import Finding, member, text
from kt_gateway.decode.shape import BESIDE, INSIDE, Shape

SHAPE = Shape(
    input=(("inputTokens",), ("input_tokens",), ("prompt_tokens",)),
    output=(("outputTokens",), ("output_tokens",), ("completion_tokens",)),
    total=(("totalTokens",), ("total_tokens",)),
    cache_read=(("cacheReadInputTokens",), ("cacheReadInputTokenCount",), ("cache_read_input_tokens",)),
    cache_write=(
        ("cacheWriteInputTokens",),
        ("cacheWriteInputTokenCount",),
        ("cache_creation_input_tokens",),
    ),
    cache_write_5m=(("cacheDetails", "5m"), ("cache_creation", "ephemeral_5m_input_tokens")),
    cache_write_1h=(("cacheDetails", "1h"), ("cache_creation", "ephemeral_1h_input_tokens")),
    reasoning=(
        ("output_tokens_details", "thinking_tokens"),
        ("completion_tokens_details", "reasoning_tokens"),
    ),
    cache=BESIDE,
    reasoning_stands=INSIDE,
)

_MEMBERS = frozenset(
    {"usage", "model", "id", "error", "stopReason", "stop_reason", "inputTextTokenCount", "results"}
    | {"prompt_token_count", "generation_token_count", "type"}
)
_LIFETIME = re.compile(r"[0-9]{1,3}[mh]")


def read(document: dict[str, Any]) -> Finding:
    """Return what a whole answer says."""
    usage = member(document, "usage") or _titan(document) or _llama(document)
    return Finding(
        usage=_by_lifetime(usage) if usage else None,
        model=text(document.get("model")),
        request_id=text(document.get("id")),
        error=chat.failed(document),
        finished=bool(document.get("stopReason") or document.get("stop_reason")),
    )


def _by_lifetime(usage: dict[str, Any]) -> dict[str, Any]:
    """Return the usage with cache writes by lifetime as an object, not as a list."""
    details = usage.get("cacheDetails")
    if not isinstance(details, list):
        return messages.with_compaction(usage)
    written = {
        item["ttl"]: item.get("inputTokens")
        for item in details
        if isinstance(item, dict) and isinstance(item.get("ttl"), str) and _LIFETIME.fullmatch(item["ttl"])
    }
    return {**usage, "cacheDetails": written}


def _titan(document: dict[str, Any]) -> dict[str, Any] | None:
    if "inputTextTokenCount" not in document:
        return None
    results = document.get("results")
    items = [item for item in results if isinstance(item, dict)] if isinstance(results, list) else []
    said = [item.get("tokenCount") for item in items]
    counted = [number for number in said if type(number) is int and number >= 0]
    whole = sum(counted) if counted and len(counted) == len(said) else None
    return {"inputTokens": document["inputTextTokenCount"], "outputTokens": whole}


def _llama(document: dict[str, Any]) -> dict[str, Any] | None:
    if "prompt_token_count" not in document:
        return None
    return {
        "inputTokens": document["prompt_token_count"],
        "outputTokens": document.get("generation_token_count"),
    }


_IN_PATH = re.compile(r"/model/([^/]+)/")

CONVERSE = Dialect(
    family="bedrock.converse",
    suffixes=("/converse",),
    pattern=_IN_PATH,
    read=read,
    shape=SHAPE,
    members=_MEMBERS,
    asks=Asks(model_in_path=_IN_PATH, streams=False, max_tokens=(("inferenceConfig", "maxTokens"),)),
    framings=(),
    refuse=refusal.plain,
)
INVOKE = Dialect(
    family="bedrock.invoke",
    suffixes=("/invoke",),
    pattern=_IN_PATH,
    read=read,
    shape=SHAPE,
    members=_MEMBERS,
    asks=Asks(model_in_path=_IN_PATH, streams=False, max_tokens=(("max_tokens",), ("max_gen_len",))),
    framings=(),
    refuse=refusal.plain,
)

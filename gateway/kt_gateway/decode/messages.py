"""What a document of Anthropic's Messages API says: an event of a stream, or a whole message.

Usage comes twice in a stream: with `message_start`, and with each `message_delta`, whose members are cumulative and
replace those before, key by key. Input excludes what a cache gave or took. A pass that only compacts the context is
paid for and is not in the sums: it is added from `iterations`; passes of other models (`advisor_message`) have other
prices and are not.
Source: recordings of 360 answers; Anthropic's "Compaction" (usage: `iterations`), as quoted and dated 2026-10-30 in
https://velog.io/@jungseonw00/claude-compaction-usage-iterations (read 2026-12-01).
"""

import dataclasses
import re
from typing import Any

from kt_gateway.decode import refusal
from kt_gateway.decode.dialect import Asks, Dialect, Telling, tells
from kt_gateway.decode.finding import Finding, member, text, word
from kt_gateway.decode.shape import BESIDE, INSIDE, Shape

SHAPE = Shape(
    input=(("input_tokens",),),
    output=(("output_tokens",),),
    cache_read=(("cache_read_input_tokens",),),
    cache_write=(("cache_creation_input_tokens",),),
    cache_write_5m=(("cache_creation", "ephemeral_5m_input_tokens"),),
    cache_write_1h=(("cache_creation", "ephemeral_1h_input_tokens"),),
    reasoning=(("output_tokens_details", "thinking_tokens"),),
    tool_calls=(("server_tool_use", "web_search_requests"),),
    cache=BESIDE,
    reasoning_stands=INSIDE,
)

MEMBERS = frozenset({"type", "usage", "model", "id", "error", "message", "delta", "stop_reason"})
_PASS_SUMS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


def read(document: dict[str, Any]) -> Finding:
    """Return what one event or one whole message says."""
    kind = word(document.get("type"))
    message = member(document, "message") or document
    delta = member(document, "delta")
    usage = member(message, "usage")
    return Finding(
        usage=with_compaction(usage) if usage else None,
        model=_served(usage) or text(message.get("model")),
        request_id=text(message.get("id")),
        service_tier=text(usage.get("service_tier")) if usage else None,
        error=kind == "error" or bool(document.get("error")),
        finished=bool((delta or message).get("stop_reason")),
        spoke=kind == "content_block_delta",
        terminal=kind == "message_stop",
    )


def _passes(usage: dict[str, Any]) -> list[dict[str, Any]]:
    passes = usage.get("iterations")
    return [one for one in passes if isinstance(one, dict)] if isinstance(passes, list) else []


def with_compaction(usage: dict[str, Any]) -> dict[str, Any]:
    """Return the usage with compacting passes in its sums, and the passes under names that hold no text."""
    passes = _passes(usage)
    if not passes:
        return usage
    whole = {**usage, "iterations": {str(number): one for number, one in enumerate(passes[:20])}}
    for one in passes:
        if one.get("type") == "compaction":
            for name in _PASS_SUMS:
                if type(one.get(name)) is int and type(whole.get(name, 0)) is int:
                    whole[name] = whole.get(name, 0) + one[name]
            whole["cache_creation"] = _added(member(whole, "cache_creation"), member(one, "cache_creation"))
    return whole


def _added(sums: dict[str, Any] | None, more: dict[str, Any] | None) -> dict[str, Any] | None:
    if not sums or not more:
        return sums or more
    return {
        name: value + more.get(name, 0) if type(value) is int and type(more.get(name, 0)) is int else value
        for name, value in {**more, **sums}.items()
    }


def _served(usage: dict[str, Any] | None) -> str | None:
    """Return the model that took over, where another one was asked and refused."""
    passes = _passes(usage) if usage else []
    return text(passes[-1].get("model")) if passes and passes[-1].get("type") == "fallback_message" else None


DIALECT = Dialect(
    family="messages",
    suffixes=("/messages",),
    pattern=re.compile(r"^(?!.*/threads/)"),  # those are OpenAI's assistants
    read=read,
    shape=SHAPE,
    members=MEMBERS,
    asks=Asks(max_tokens=(("max_tokens",),)),
    typed_terminal=True,
    telling=Telling("usage", "stop_reason", words=(b"message_stop",)),
    finish=tells("stop_reason"),
    overlays=True,
    refuse=refusal.messages,
    key_header="x-api-key",
)

VERTEX = dataclasses.replace(
    # Claude on Vertex AI: the model stands in the path, Google's own token in the header.
    DIALECT,
    suffixes=(":rawPredict", ":streamRawPredict"),
    pattern=re.compile(r"/publishers/anthropic/models/(?!count-tokens)"),
    asks=Asks(max_tokens=(("max_tokens",),), model_in_path=re.compile(r"/models/([^/:]+):")),
    key_header="authorization",
)

"""What a chat.completions document says: an event of a stream, or a whole answer. By structure, never by text.

Source: the OpenAI API reference for chat objects and chunks (read 2026-11-30); servers that differ are in
fixtures/wire/openai-chat/*/SOURCE.md.
"""

import re
from typing import Any

from kt_gateway.decode import cost
from kt_gateway.decode.dialect import Dialect, Telling, tells
from kt_gateway.decode.finding import Finding, any_of, member, text
from kt_gateway.decode.shape import Shape

SHAPE = Shape(
    input=(("prompt_tokens",), ("input_tokens",)),
    output=(("completion_tokens",), ("output_tokens",)),
    total=(("total_tokens",),),
    cache_read=(
        ("prompt_tokens_details", "cached_tokens"),
        ("prompt_token_details", "cached_tokens"),  # Writer, Together
        ("input_tokens_details", "cached_tokens"),
        ("prompt_cache_hit_tokens",),  # DeepSeek, a mirror of the first
        ("cached_tokens",),  # Moonshot, Together
        ("num_cached_tokens",),  # Mistral
    ),
    cache_write=(
        ("prompt_tokens_details", "cache_write_tokens"),
        ("prompt_tokens_details", "cache_creation_tokens"),
        ("cache_creation_input_tokens",),
    ),
    reasoning=(
        ("completion_tokens_details", "reasoning_tokens"),
        ("completion_token_details", "reasoning_tokens"),
        ("output_tokens_details", "reasoning_tokens"),
        ("reasoning_tokens",),
    ),
    audio_input=(("prompt_tokens_details", "audio_tokens"),),
    audio_output=(("completion_tokens_details", "audio_tokens"),),
    image_input=(("prompt_tokens_details", "image_tokens"),),
    image_output=(("completion_tokens_details", "image_tokens"),),
    seconds=(("prompt_audio_seconds",),),  # Mistral
    tool_calls=(
        ("server_tool_use", "web_search_requests"),  # OpenRouter
        ("num_server_side_tools_used",),  # xAI
    ),
    hidden_reasoning=True,  # Gemini's compatible API
    cost=cost.OPENAI_SHAPED,
)

MEMBERS = frozenset({"usage", "x_groq", "model", "id", "service_tier", "error", "object", "type"})
"""The top-level members that tell what we want to know; enough for bodies too large to parse."""

_SPOKEN = (
    "content",
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "refusal",
    "tool_calls",
    "function_call",
    "audio",
    "images",
)


def read(document: dict[str, Any]) -> Finding:
    """Return what one event or one whole answer says."""
    choices = document.get("choices")
    usage = document.get("usage")
    return Finding(
        usage=usage if isinstance(usage, dict) else None,
        usage_aside=member(document.get("x_groq"), "usage"),
        model=text(document.get("model")),
        request_id=text(document.get("id")),
        service_tier=text(document.get("service_tier")),
        error=failed(document),
        finished=any_of(choices, is_finished),
        spoke=any_of(choices, _speaks),
        only_usage=choices == [] and isinstance(usage, dict),
    )


def failed(document: dict[str, Any]) -> bool:
    """Whether a document of an OpenAI-shaped API is, or holds, an error."""
    return bool(document.get("error")) or document.get("object") == "error" or document.get("type") == "error"


def is_finished(choice: dict[str, Any]) -> bool:
    """Whether a choice carries its finish reason."""
    return bool(choice.get("finish_reason"))


def _speaks(choice: dict[str, Any]) -> bool:
    said = choice.get("delta") or choice.get("message")
    return isinstance(said, dict) and any(said.get(name) for name in _SPOKEN)


DIALECT = Dialect(
    family="chat.completions",
    suffixes=("/chat/completions",),
    read=read,
    shape=SHAPE,
    members=MEMBERS,
    terminal=b"[DONE]",
    telling=Telling("usage", "finish_reason"),
    finish=tells("finish_reason"),
    asks_for_usage=True,
)

PROMPTS = Dialect(
    # Portkey's stored prompts: the request names none of the model's facts, the answer is a chat answer.
    family="chat.completions",
    suffixes=("/completions",),
    pattern=re.compile(r"/prompts/[^/]+/completions"),
    read=read,
    shape=SHAPE,
    members=MEMBERS,
    terminal=b"[DONE]",
    telling=Telling("usage", "finish_reason"),
    finish=tells("finish_reason"),
)

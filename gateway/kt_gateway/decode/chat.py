"""What a chat.completions document says: an event of a stream, or a whole answer. By structure, never by text.

Source: the OpenAI API reference for chat objects and chunks (read 2026-11-30); servers that differ are in
fixtures/wire/openai-chat/*/SOURCE.md.
"""

from typing import Any

from kt_gateway.decode.finding import Finding, text
from kt_gateway.decode.usage import Shape

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
)


def read(document: dict[str, Any]) -> Finding:
    """Return what one event or one whole answer says."""
    choices = document.get("choices")
    usage = document.get("usage")
    aside = document.get("x_groq")
    return Finding(
        usage=usage if isinstance(usage, dict) else None,
        usage_aside=_member(aside, "usage"),
        model=text(document.get("model")),
        request_id=text(document.get("id")),
        service_tier=text(document.get("service_tier")),
        error=bool(document.get("error"))
        or document.get("object") == "error"
        or document.get("type") == "error",
        finished=_any(choices, _is_finished),
        spoke=_any(choices, _speaks),
        only_usage=choices == [] and isinstance(usage, dict),
    )


def _member(value: Any, name: str) -> dict[str, Any] | None:
    member = value.get(name) if isinstance(value, dict) else None
    return member if isinstance(member, dict) else None


def _any(choices: Any, claim: Any) -> bool:
    return isinstance(choices, list) and any(isinstance(choice, dict) and claim(choice) for choice in choices)


def _is_finished(choice: dict[str, Any]) -> bool:
    return bool(choice.get("finish_reason"))


def _speaks(choice: dict[str, Any]) -> bool:
    said = choice.get("delta") or choice.get("message")
    return isinstance(said, dict) and any(said.get(name) for name in (*_SPOKEN, "audio", "images"))

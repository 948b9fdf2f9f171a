"""What a document of Gemini's own API says, on Google's servers and on Vertex AI.

`promptTokenCount` includes what came from a cache; `candidatesTokenCount` excludes thoughts; what the model's tools
fed back to it is counted beside the prompt. Each event of a stream carries usage so far: the last one wins. Google
leaves out numbers that are zero. Details by modality are lists of {modality, tokenCount}; they become objects here.
Source: https://firebase.google.com/docs/reference/js/ai.usagemetadata, https://ai.google.dev/gemini-api/docs/streaming
(Interactions; both read 2026-12-01), and recordings of both of Google's services.
"""

import re
from typing import Any

from kt_gateway.decode import refusal
from kt_gateway.decode.dialect import ARRAY, SSE, Asks, Dialect, Telling, tells
from kt_gateway.decode.finding import Finding, any_of, member, text, word
from kt_gateway.decode.shape import BESIDE, INSIDE, Shape

SHAPE = Shape(
    input=(("promptTokenCount",),),
    output=(("candidatesTokenCount",), ("responseTokenCount",)),
    total=(("totalTokenCount",),),
    cache_read=(("cachedContentTokenCount",),),
    reasoning=(("thoughtsTokenCount",),),
    more_input=(("toolUsePromptTokenCount",),),
    audio_input=(("promptTokensDetails", "AUDIO"),),
    audio_cached=(("cacheTokensDetails", "AUDIO"),),
    audio_output=(("candidatesTokensDetails", "AUDIO"), ("responseTokensDetails", "AUDIO")),
    image_input=(("promptTokensDetails", "IMAGE"),),
    image_cached=(("cacheTokensDetails", "IMAGE"),),
    image_output=(("candidatesTokensDetails", "IMAGE"),),
    cache=INSIDE,
    reasoning_stands=BESIDE,
)
EMBEDDING_SHAPE = Shape(
    input=(("promptTokenCount",),),
    total=(("totalTokenCount",),),
    audio_input=(("promptTokensDetails", "AUDIO"), ("promptTokenDetails", "AUDIO")),
    image_input=(("promptTokensDetails", "IMAGE"), ("promptTokenDetails", "IMAGE")),
    output_wanted=False,
)
INTERACTION_SHAPE = Shape(
    input=(("total_input_tokens",),),
    output=(("total_output_tokens",),),
    total=(("total_tokens",),),
    cache_read=(("total_cached_tokens",),),
    reasoning=(("total_thought_tokens",),),
    more_input=(("total_tool_use_tokens",),),
    audio_input=(("input_tokens_by_modality", "AUDIO"),),
    audio_cached=(("cached_tokens_by_modality", "AUDIO"),),
    audio_output=(("output_tokens_by_modality", "AUDIO"),),
    image_input=(("input_tokens_by_modality", "IMAGE"),),
    image_cached=(("cached_tokens_by_modality", "IMAGE"),),
    image_output=(("output_tokens_by_modality", "IMAGE"),),
    cache=INSIDE,
    reasoning_stands=BESIDE,
)

_MODALITIES = {1: "TEXT", 2: "IMAGE", 3: "VIDEO", 4: "AUDIO", 5: "DOCUMENT"}
"""Vertex AI's numbers of the modalities, which some of its answers carry in the place of their names."""
_MODALITY = re.compile(r"[A-Za-z_]{1,20}")
_MEMBERS = frozenset({"usageMetadata", "modelVersion", "responseId", "error", "promptFeedback"})


def read(document: dict[str, Any]) -> Finding:
    """Return what one event or one whole answer says."""
    usage = member(document, "usageMetadata")
    candidates = document.get("candidates")
    blocked = member(document, "promptFeedback")
    return Finding(
        usage=_by_modality(usage) if usage else None,
        model=text(document.get("modelVersion")),
        request_id=text(document.get("responseId")),
        service_tier=(text(usage.get("serviceTier")) or text(usage.get("trafficType"))) if usage else None,
        error=bool(document.get("error")),
        finished=any_of(candidates, _is_finished) or bool(blocked and blocked.get("blockReason")),
        spoke=any_of(candidates, _speaks),
    )


def _is_finished(candidate: dict[str, Any]) -> bool:
    return bool(candidate.get("finishReason"))


def _speaks(candidate: dict[str, Any]) -> bool:
    return bool((member(candidate, "content") or {}).get("parts"))


def _by_modality(usage: dict[str, Any]) -> dict[str, Any]:
    """Return the usage with each list of counts by modality as an object: names and numbers, nothing else."""
    return {name: _counts(value) if isinstance(value, list) else value for name, value in usage.items()}


def _counts(items: list[Any]) -> dict[str, Any]:
    counts: dict[str, Any] = {}
    for item in items:
        if not isinstance(item, dict):
            continue
        name = item.get("modality")
        name = _MODALITIES.get(name, "") if type(name) is int else name
        if isinstance(name, str) and _MODALITY.fullmatch(name):
            counts[name.upper()] = item.get("tokenCount", item.get("tokens"))
    return counts


def read_interaction(document: dict[str, Any]) -> Finding:
    """Return what an interaction, or one event of its stream, says."""
    kind = word(document.get("event_type"))
    whole = member(document, "interaction") or document
    usage = member(whole, "usage")
    ended = kind in ("interaction.complete", "interaction.completed")
    return Finding(
        usage=_by_modality(usage) if usage else None,
        model=text(whole.get("model")),
        request_id=text(whole.get("id")),
        error=bool(document.get("error")) or whole.get("status") == "failed",
        finished=ended,
        spoke=kind in ("content.delta", "step.delta"),
        terminal=ended,
        deferred=not kind and whole.get("status") in ("queued", "in_progress"),
    )


_IN_PATH = re.compile(r"/models/([^/:]+):")
_MAX_TOKENS = (("generationConfig", "maxOutputTokens"),)

GENERATE = Dialect(
    family="gemini.generate",
    suffixes=(":generateContent",),
    read=read,
    shape=SHAPE,
    members=_MEMBERS,
    asks=Asks(
        model_in_path=_IN_PATH,
        streams=False,
        max_tokens=_MAX_TOKENS,
        choices=("generationConfig", "candidateCount"),
    ),
    framings=(),
    refuse=refusal.google,
    key_header="x-goog-api-key",
)
STREAM = Dialect(
    family="gemini.generate",
    suffixes=(":streamGenerateContent",),
    read=read,
    shape=SHAPE,
    members=_MEMBERS,
    asks=Asks(
        model_in_path=_IN_PATH,
        streams=True,
        max_tokens=_MAX_TOKENS,
        choices=("generationConfig", "candidateCount"),
    ),
    framings=(SSE, ARRAY),
    telling=Telling("usageMetadata", "finishReason", "blockReason"),
    finish=tells("finishReason"),
    refuse=refusal.google,
    key_header="x-goog-api-key",
)
EMBED = Dialect(
    family="gemini.embed",
    suffixes=(":embedContent", ":batchEmbedContents"),
    read=read,
    shape=EMBEDDING_SHAPE,
    members=_MEMBERS,
    asks=Asks(model_in_path=_IN_PATH, streams=False),
    framings=(),
    refuse=refusal.google,
    key_header="x-goog-api-key",
)
INTERACTIONS = Dialect(
    family="gemini.interactions",
    suffixes=("/interactions",),
    read=read_interaction,
    shape=INTERACTION_SHAPE,
    members=frozenset({"usage", "model", "id", "status", "error", "event_type"}),
    inside={"interaction": frozenset({"usage", "model", "id", "status"})},
    asks=Asks(max_tokens=(("generation_config", "max_output_tokens"),)),
    typed_terminal=True,
    telling=Telling("usage", words=(b"interaction.complete",)),
    refuse=refusal.google,
    key_header="x-goog-api-key",
)
CACHED = Dialect(
    # What was put into a cache is paid for by the hour; only its size is told, as a total of no use's tokens.
    family="gemini.cache",
    suffixes=("/cachedContents",),
    read=lambda document: Finding(
        usage=member(document, "usageMetadata"),
        model=text(document.get("model")),
        error=bool(document.get("error")),
    ),
    shape=Shape(input=()),
    members=frozenset({"usageMetadata", "model", "error"}),
    framings=(),
    refuse=refusal.google,
    key_header="x-goog-api-key",
)

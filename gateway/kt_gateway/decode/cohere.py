"""What a document of Cohere's chat, generate and embed APIs says, versions 1 and 2.

`tokens` are what the model saw and said, `billed_units` leave out what Cohere adds to a prompt; the first are what
other providers call usage, so they count, and the second stay in the raw object. Writer answers `/v1/chat` in OpenAI's
words.
Source: https://docs.cohere.com/v2/docs/how-does-cohere-pricing-work (read 2026-12-01), and recordings of 74 answers.
"""

from typing import Any

from kt_gateway.decode import chat, refusal
from kt_gateway.decode.dialect import LINES, SSE, Asks, Dialect, Telling
from kt_gateway.decode.embeddings import SHAPE as EMBED_SHAPE
from kt_gateway.decode.finding import Finding, any_of, member, text
from kt_gateway.decode.shape import INSIDE, Shape

SHAPE = Shape(
    input=(("tokens", "input_tokens"), ("billed_units", "input_tokens"), ("prompt_tokens",)),
    output=(("tokens", "output_tokens"), ("billed_units", "output_tokens"), ("completion_tokens",)),
    total=(("total_tokens",),),
    cache_read=(("cached_tokens",), ("prompt_token_details", "cached_tokens")),
    reasoning=(
        ("completion_tokens_details", "reasoning_tokens"),
        ("completion_token_details", "reasoning_tokens"),
    ),
    cache=INSIDE,
)

_MEMBERS = frozenset(
    {
        "usage",
        "meta",
        "type",
        "event_type",
        "error",
        "id",
        "generation_id",
        "model",
        "is_finished",
        "finish_reason",
    }
)
_ENDS = ("message-end", "stream-end")


def read(document: dict[str, Any]) -> Finding:
    """Return what one event, one line or one whole answer says."""
    kind = document.get("type") or document.get("event_type")
    whole = member(document, "response") or member(document, "delta") or document
    ended = kind in _ENDS or document.get("is_finished") is True
    return Finding(
        usage=member(whole, "usage") or member(whole, "meta"),
        model=text(document.get("model")),
        request_id=text(document.get("id")) or text(whole.get("generation_id")),
        error=chat.failed(document) or whole.get("finish_reason") in ("ERROR", "ERROR_TOXIC", "ERROR_LIMIT"),
        finished=ended
        or bool(whole.get("finish_reason"))
        or any_of(document.get("choices"), chat.is_finished),
        spoke=kind in ("content-delta", "tool-call-delta", "text-generation"),
        terminal=ended,
    )


_TELLING = Telling("usage", "meta", "finish_reason", words=(b"message-end", b"stream-end"))

CHAT = Dialect(
    family="cohere.chat",
    suffixes=("/v1/chat", "/v2/chat", "/chat"),
    read=read,
    shape=SHAPE,
    members=_MEMBERS,
    inside={"response": _MEMBERS, "delta": _MEMBERS},
    asks=Asks(max_tokens=(("max_tokens",),), streams=False),
    framings=(SSE, LINES),
    typed_terminal=True,
    telling=_TELLING,
    refuse=refusal.plain,
)
GENERATE = Dialect(
    family="cohere.generate",
    suffixes=("/v1/generate",),
    read=read,
    shape=SHAPE,
    members=_MEMBERS,
    inside={"response": _MEMBERS},
    asks=Asks(max_tokens=(("max_tokens",),), choices=("num_generations",), streams=False),
    framings=(LINES,),
    typed_terminal=True,
    telling=_TELLING,
    refuse=refusal.plain,
)
EMBED = Dialect(
    family="cohere.embed",
    suffixes=("/v1/embed", "/v2/embed"),
    read=read,
    shape=EMBED_SHAPE,
    members=_MEMBERS,
    framings=(),
    refuse=refusal.plain,
)

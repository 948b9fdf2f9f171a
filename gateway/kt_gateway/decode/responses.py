"""What a Responses document says: an event of a stream, or a whole response object.

The events that end a stream carry the response with its usage; one that was asked for in the background is answered
before the work is done and reports nothing. Tokens of the hosted image tool stand apart from the model's and stay so.
Source: OpenAI's specification of responses and their streaming events; recordings of 222 answers of thirteen servers,
`responses/compact` among them.
"""

from typing import Any

from kt_gateway.decode import chat, cost, refusal
from kt_gateway.decode.dialect import Asks, Dialect, Telling
from kt_gateway.decode.finding import Finding, member, text, word
from kt_gateway.decode.shape import Shape

SHAPE = Shape(
    input=(("input_tokens",),),
    output=(("output_tokens",),),
    total=(("total_tokens",),),
    cache_read=(("input_tokens_details", "cached_tokens"),),
    cache_write=(("input_tokens_details", "cache_write_tokens"),),
    reasoning=(("output_tokens_details", "reasoning_tokens"),),
    audio_input=(("input_tokens_details", "audio_tokens"),),
    audio_output=(("output_tokens_details", "audio_tokens"),),
    image_input=(("input_tokens_details", "image_tokens"),),
    image_output=(("output_tokens_details", "image_tokens"),),
    tool_calls=(("num_server_side_tools_used",),),
    cost=cost.OPENAI_SHAPED,
)

TERMINAL = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done"}
)
_UNDONE = frozenset({"queued", "in_progress"})
_MEMBERS = frozenset({"usage", "tool_usage", "model", "id", "service_tier", "error", "object", "status"})


def read(document: dict[str, Any]) -> Finding:
    """Return what one event or one whole answer says."""
    kind = word(document.get("type"))
    response = member(document, "response")
    if response is None:
        if kind:
            return Finding(error=chat.failed(document), spoke=kind.endswith(".delta"))
        response = document
    terminal = kind in TERMINAL
    return Finding(
        usage=_usage(response),
        model=text(response.get("model")),
        request_id=text(response.get("id")),
        service_tier=text(response.get("service_tier")),
        error=chat.failed(response) or response.get("status") == "failed" or kind == "error",
        finished=terminal,
        terminal=terminal,
        deferred=response is document and word(response.get("status")) in _UNDONE,
    )


def _usage(response: dict[str, Any]) -> dict[str, Any] | None:
    """Return the usage object, with what hosted tools used beside it, under a name of its own."""
    usage = member(response, "usage")
    tools = member(response, "tool_usage")
    if usage is None or not tools:
        return usage
    return {**usage, "tool_usage": tools}


DIALECT = Dialect(
    family="responses",
    suffixes=("/responses", "/responses/compact"),
    read=read,
    shape=SHAPE,
    members=_MEMBERS | {"type"},
    inside={"response": _MEMBERS},
    asks=Asks(max_tokens=(("max_output_tokens",),)),
    typed_terminal=True,
    telling=Telling("usage", words=tuple(kind.encode() for kind in sorted(TERMINAL))),
    refuse=refusal.responses,
)

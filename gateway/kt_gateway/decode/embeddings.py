"""What an answer to embeddings or rerank says: input only; servers report it as a prompt, a total, or billed units.

Source: recordings of OpenAI, Voyage ("total_tokens"), Cohere ("meta.billed_units"), Mistral and local servers.
"""

from typing import Any

from kt_gateway.decode import chat, cost
from kt_gateway.decode.dialect import Dialect
from kt_gateway.decode.finding import Finding, member, text
from kt_gateway.decode.shape import Shape

SHAPE = Shape(
    input=(
        ("prompt_tokens",),
        ("input_tokens",),
        ("tokens", "input_tokens"),
        ("billed_units", "input_tokens"),
    ),
    output=(("completion_tokens",),),
    total=(("total_tokens",),),
    cache_read=(("prompt_tokens_details", "cached_tokens"),),
    image_input=(("billed_units", "image_tokens"), ("prompt_tokens_details", "image_tokens")),
    output_wanted=False,
    input_from_total=True,
    zeros_count=True,  # an empty text has no tokens
    cost=cost.OPENAI_SHAPED,
)

_MEMBERS = frozenset({"usage", "meta", "model", "id", "error", "object", "type"})


def read(document: dict[str, Any]) -> Finding:
    """Return what a whole answer says."""
    return Finding(
        usage=member(document, "usage") or member(document, "meta"),
        model=text(document.get("model")),
        request_id=text(document.get("id")),
        error=chat.failed(document),
    )


EMBEDDINGS = Dialect(
    family="embeddings", suffixes=("/embeddings",), read=read, shape=SHAPE, members=_MEMBERS, framings=()
)
RERANK = Dialect(
    family="rerank", suffixes=("/rerank",), read=read, shape=SHAPE, members=_MEMBERS, framings=()
)

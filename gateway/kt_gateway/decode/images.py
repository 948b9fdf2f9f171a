"""What answers of the images API say: tokens by modality; partial images of a stream, then the event that ends it.

Source: https://www.rubydoc.info/gems/openai/OpenAI/Models/ImageGenCompletedEvent/Usage and its neighbours, generated
from OpenAI's specification (read 2026-12-01). Older models (dall-e) report nothing: they are priced by image.
"""

from typing import Any

from kt_gateway.decode import chat, cost
from kt_gateway.decode.dialect import Dialect, Telling
from kt_gateway.decode.finding import Finding, member, text, word
from kt_gateway.decode.shape import Shape

SHAPE = Shape(
    input=(("input_tokens",), ("prompt_tokens",)),
    output=(("output_tokens",), ("completion_tokens",)),
    total=(("total_tokens",),),
    cache_read=(("input_tokens_details", "cached_tokens"),),
    image_input=(("input_tokens_details", "image_tokens"),),
    image_output=(("output_tokens_details", "image_tokens"),),
    bare_output="image_output",
    cost=cost.OPENAI_SHAPED,
)

_ENDS = frozenset({"image_generation.completed", "image_edit.completed"})


def read(document: dict[str, Any]) -> Finding:
    """Return what one event or one whole answer says."""
    kind = word(document.get("type"))
    ended = kind in _ENDS
    return Finding(
        usage=member(document, "usage"),
        model=text(document.get("model")),
        error=chat.failed(document),
        finished=ended,
        spoke=kind.endswith(".partial_image"),
        terminal=ended,
    )


DIALECT = Dialect(
    family="images",
    suffixes=("/images/generations", "/images/edits", "/images/variations"),
    read=read,
    shape=SHAPE,
    members=frozenset({"usage", "type", "model", "error", "object"}),
    typed_terminal=True,
    telling=Telling("usage", words=tuple(kind.encode() for kind in sorted(_ENDS))),
)

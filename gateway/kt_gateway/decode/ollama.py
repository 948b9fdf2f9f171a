"""What a document of Ollama's own API says: a line of a stream, or a whole answer.

`prompt_eval_count` is missing where an older server took the whole prompt from its cache. Streams are the default; the
line with `done: true` ends one and has the counts.
Source: Ollama's docs/api.md, and recordings of 31 answers; durations are no usage and are not kept.
"""

from typing import Any

from kt_gateway.decode import refusal
from kt_gateway.decode.dialect import LINES, Asks, Dialect, Telling
from kt_gateway.decode.finding import Finding, member, text
from kt_gateway.decode.shape import Shape

SHAPE = Shape(input=(("prompt_eval_count",),), output=(("eval_count",),))
EMBED_SHAPE = Shape(input=(("prompt_eval_count",),), output_wanted=False, zeros_count=True)

_COUNTS = ("prompt_eval_count", "eval_count")
_MEMBERS = frozenset({*_COUNTS, "model", "done", "done_reason", "error"})


def read(document: dict[str, Any]) -> Finding:
    """Return what one line or one whole answer says."""
    counts = {name: document[name] for name in _COUNTS if document.get(name) is not None}
    message = member(document, "message")
    done = document.get("done") is True
    return Finding(
        usage=counts or None,
        model=text(document.get("model")),
        error=bool(document.get("error")),
        finished=done,
        spoke=bool(document.get("response") or document.get("thinking"))
        or bool(message and (message.get("content") or message.get("thinking") or message.get("tool_calls"))),
        terminal=done,
    )


_MAX_TOKENS = (("options", "num_predict"),)
_TELLING = Telling(*_COUNTS, words=(b'"done":true', b'"done": true'))

CHAT = Dialect(
    family="ollama.chat",
    suffixes=("/api/chat",),
    read=read,
    shape=SHAPE,
    members=_MEMBERS,
    asks=Asks(streams=True, max_tokens=_MAX_TOKENS, choices=("n",)),
    framings=(LINES,),
    typed_terminal=True,
    telling=_TELLING,
    refuse=refusal.ollama,
)
GENERATE = Dialect(
    family="ollama.generate",
    suffixes=("/api/generate",),
    read=read,
    shape=SHAPE,
    members=_MEMBERS,
    asks=Asks(streams=True, max_tokens=_MAX_TOKENS),
    framings=(LINES,),
    typed_terminal=True,
    telling=_TELLING,
    refuse=refusal.ollama,
)
EMBED = Dialect(
    family="ollama.embed",
    suffixes=("/api/embed", "/api/embeddings"),
    read=read,
    shape=EMBED_SHAPE,
    members=_MEMBERS,
    framings=(),
    refuse=refusal.ollama,
)

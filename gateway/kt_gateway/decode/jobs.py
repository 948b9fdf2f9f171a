"""Work that is asked for in one call and done later: batches, and runs of the Assistants API.

The call that asks is answered at once, with the object of the job and usage that is null or zero: its row says
`deferred`. A stream of a run brings the run's usage with its last state; those of its steps are parts of it.
Source: OpenAI's specification of BatchUsage (https://www.rubydoc.info/gems/openai/OpenAI/Models/BatchUsage, aggregated;
read 2026-12-01); runs and their streams as they are in recordings; Anthropic tells a batch's usage in its results only.
"""

import re
from typing import Any

from kt_gateway.decode import chat, refusal
from kt_gateway.decode.dialect import Dialect, Telling
from kt_gateway.decode.finding import Finding, member, text, word
from kt_gateway.decode.responses import SHAPE as BATCH_SHAPE

_UNDONE = frozenset({"queued", "in_progress", "validating", "finalizing", "cancelling", "requires_action"})
_RUN_ENDS = frozenset({"completed", "incomplete", "failed", "cancelled", "expired"})
_MEMBERS = frozenset(
    {"usage", "model", "id", "status", "processing_status", "error", "last_error", "object", "type"}
)


def read_run(document: dict[str, Any]) -> Finding:
    """Return what one event of a run's stream, or the run itself, says; a step of it is nothing of its own."""
    if document.get("object") == "thread.message.delta":
        return Finding(spoke=True)
    if document.get("object") not in ("thread.run", "error", None):
        return Finding()
    status = word(document.get("status"))
    return Finding(
        usage=member(document, "usage"),
        model=text(document.get("model")),
        request_id=text(document.get("id")),
        service_tier=text(document.get("service_tier")),
        error=chat.failed(document) or bool(document.get("last_error")),
        finished=status in _RUN_ENDS,
        deferred=status in _UNDONE,
    )


def read_batch(document: dict[str, Any]) -> Finding:
    """Return what the object of a batch says."""
    status = word(document.get("status")) or word(document.get("processing_status"))
    return Finding(
        usage=member(document, "usage"),
        model=text(document.get("model")),
        request_id=text(document.get("id")),
        error=bool(document.get("error")) or document.get("type") == "error",
        deferred=status in _UNDONE,
    )


RUNS = Dialect(
    family="assistants.runs",
    suffixes=("/runs", "/submit_tool_outputs"),
    pattern=re.compile(r"/threads/"),
    read=read_run,
    shape=chat.SHAPE,
    members=_MEMBERS,
    terminal=b"[DONE]",
    telling=Telling("usage"),
)
BATCHES = Dialect(
    family="batches",
    suffixes=("/batches", "/batch/jobs"),
    pattern=re.compile(r"(?<!/messages)/batch"),
    read=read_batch,
    shape=BATCH_SHAPE,
    members=_MEMBERS,
    framings=(),
)
MESSAGE_BATCHES = Dialect(
    family="batches",
    suffixes=("/messages/batches",),
    read=read_batch,
    shape=BATCH_SHAPE,
    members=_MEMBERS,
    framings=(),
    refuse=refusal.messages,
    key_header="x-api-key",
)

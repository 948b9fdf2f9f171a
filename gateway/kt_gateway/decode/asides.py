"""Calls that use a provider without being charged for: moderation, and counting what a call would cost.

Moderation reports no tokens and costs nothing: its counts stay unknown, and the reason says that nothing is owed. The
answer to a counting call is a number about another call: what it uses itself is zero, by the provider's own word.
Source: https://developers.openai.com/api/docs/models/omni-moderation-latest (free models), Anthropic's "Token counting"
("free to use"), Google's billing questions (counting is not billed); read 2026-12-01. A moderation that does report
usage (Mistral's) counts.
"""

import re
from typing import Any

from kt_gateway.decode import chat, refusal
from kt_gateway.decode.dialect import Asks, Dialect
from kt_gateway.decode.embeddings import SHAPE
from kt_gateway.decode.finding import Finding, member, text
from kt_gateway.decode.shape import Shape
from kt_ledger.values import Counts

NOTHING_USED = Counts(input=0, output=0)
_MEMBERS = frozenset({"usage", "model", "id", "error", "object", "type"})


def read_moderation(document: dict[str, Any]) -> Finding:
    """Return what a judgement of some text says."""
    return Finding(
        usage=member(document, "usage"),
        model=text(document.get("model")),
        request_id=text(document.get("id")),
        error=chat.failed(document),
    )


def read_count(document: dict[str, Any]) -> Finding:
    """Return what the answer to a counting call says about that call itself: whether it failed."""
    return Finding(error=chat.failed(document))


MODERATIONS = Dialect(
    family="moderations",
    suffixes=("/moderations",),
    read=read_moderation,
    shape=SHAPE,
    members=_MEMBERS,
    framings=(),
    unbilled=True,
)
COUNT_MESSAGES = Dialect(
    family="count_tokens",
    suffixes=("/messages/count_tokens",),
    read=read_count,
    shape=Shape(input=()),
    members=_MEMBERS,
    framings=(),
    fixed=NOTHING_USED,
    refuse=refusal.messages,
    key_header="x-api-key",
)
COUNT_RESPONSES = Dialect(
    family="count_tokens",
    suffixes=("/responses/input_tokens",),
    read=read_count,
    shape=Shape(input=()),
    members=_MEMBERS,
    framings=(),
    fixed=NOTHING_USED,
    refuse=refusal.responses,
)
COUNT_GEMINI = Dialect(
    family="count_tokens",
    suffixes=(":countTokens",),
    read=read_count,
    shape=Shape(input=()),
    members=_MEMBERS,
    asks=Asks(model_in_path=re.compile(r"/models/([^/:]+):"), streams=False),
    framings=(),
    fixed=NOTHING_USED,
    refuse=refusal.google,
    key_header="x-goog-api-key",
)
COUNT_ELSEWHERE = Dialect(
    # Claude on Vertex AI and models on Bedrock.
    family="count_tokens",
    suffixes=("/count-tokens:rawPredict", "/count-tokens"),
    pattern=re.compile(r"/models?/"),
    read=read_count,
    shape=Shape(input=()),
    members=_MEMBERS,
    asks=Asks(model_in_path=re.compile(r"/model/([^/]+)/"), streams=False),
    framings=(),
    fixed=NOTHING_USED,
    refuse=refusal.plain,
)

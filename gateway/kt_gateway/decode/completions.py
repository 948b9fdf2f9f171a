"""What a legacy completions document says: chat's usage, with text where chat has messages.

Source: OpenAI's specification of completion objects; recordings of nine servers. `stream_options` is known here too.
"""

import dataclasses
from typing import Any

from kt_gateway.decode import chat
from kt_gateway.decode.dialect import Dialect
from kt_gateway.decode.finding import Finding, any_of


def read(document: dict[str, Any]) -> Finding:
    """Return what one event or one whole answer says."""
    found = chat.read(document)
    return dataclasses.replace(found, spoke=found.spoke or any_of(document.get("choices"), _speaks))


def _speaks(choice: dict[str, Any]) -> bool:
    return bool(choice.get("text"))


DIALECT: Dialect = dataclasses.replace(
    chat.DIALECT, family="completions", suffixes=("/completions",), read=read
)

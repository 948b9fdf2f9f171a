"""One call as the throw-away provider saw it. The list of them is what agent and ledger are compared with."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class ProviderCall:
    """What came, and what was answered.

    `key` is the credential that came with it, `text` the request's body. `input_tokens` and `output_tokens` are what
    the answer says was used, None where it says nothing. `answered` is set once the whole answer was handed over.
    """

    number: int
    method: str
    path: str
    key: str
    text: str = ""
    model: str = ""
    stream: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    answered: bool = False
    refused: bool = False


def totals(calls: Sequence[ProviderCall]) -> tuple[int, int]:
    """Return the input and output tokens of the calls whose usage was told."""
    return sum(call.input_tokens or 0 for call in calls), sum(call.output_tokens or 0 for call in calls)

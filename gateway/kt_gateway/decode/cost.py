"""What a provider says that a call cost, as integer nano-dollars: a number of its own, never added to ours.

Laws: exact decimal arithmetic on the digits that the provider sent; rounded half up, once; zero only from a provider
that is known to know its prices; what is no number is no cost.
Source: https://docs.x.ai/developers/cost-tracking (10^10 ticks a dollar; read 2026-12-01). OpenRouter's credits, which
are dollars, and Perplexity's object as they are in recordings of their answers.
"""

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from kt_gateway.decode.shape import Cost, value_at
from kt_ledger.values import U64_MAX

OPENAI_SHAPED: tuple[Cost, ...] = (
    Cost(path=("cost",), proof=(("is_byok",), ("cost_details",))),  # OpenRouter
    Cost(path=("cost", "total_cost")),  # Perplexity
    Cost(path=("cost_in_usd_ticks",), nanousd="0.1"),  # xAI
)
"""Where servers of the OpenAI family say it."""


def reported(usage: dict[str, Any], costs: tuple[Cost, ...]) -> int | None:
    """Return the cost that a usage object reports, None where it reports none that can be believed."""
    for cost in costs:
        value = value_at(usage, cost.path)
        if type(value) not in (int, float) or not 0 <= value < U64_MAX:
            continue
        if value == 0 and not any(value_at(usage, path) is not None for path in cost.proof):
            continue
        exact = Decimal(repr(value)) * Decimal(cost.nanousd)
        nanousd = int(exact.quantize(Decimal(1), rounding=ROUND_HALF_UP)) if exact < U64_MAX else None
        if nanousd is not None:
            return nanousd
    return None

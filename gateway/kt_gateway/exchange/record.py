"""The journal's payloads for one exchange, as `kt_ledger.journal` describes them. Every field is bounded."""

from typing import TYPE_CHECKING, Any

from kt_gateway.decode import cost, usage
from kt_gateway.exchange.verdict import Verdict

if TYPE_CHECKING:
    from kt_gateway.exchange.exchange import Exchange, Headers

PATH_LIMIT = 2000
"""Characters of a path that are kept."""

_RETRY_COUNT = b"x-stainless-retry-count"  # sent by the OpenAI and Anthropic SDKs with every request


def open_fields(exchange: "Exchange") -> dict[str, Any]:
    """Return the `open` payload: who asked for what, and how much it may cost."""
    asked = exchange.asked
    return {
        **_identity(exchange),
        "at_ns": exchange.started_at_ns,
        **_known(
            model=asked.model,
            stream=asked.stream,
            max_tokens=asked.max_tokens,
            choices=asked.choices,
            retry_count=_retry_count(exchange.head.headers),
        ),
        "request_bytes": exchange.request_bytes,
        "usage_asked_by_us": exchange.usage_asked_by_us,
    }


def close_fields(
    exchange: "Exchange", judged: Verdict, found: dict[str, Any], *, at_ns: int, mono_ns: int
) -> dict[str, Any]:
    """Return the `close` payload, with open's fields too (a `local` one) where nothing left for the provider."""
    began = {} if exchange.was_sent else open_fields(exchange)
    return {
        **began,
        **_identity(exchange),
        "opened_at_ns": exchange.started_at_ns,
        "at_ns": at_ns,
        "completeness": judged.completeness.value,
        "counts": {},
        **_known(reason=judged.reason.value if judged.reason else None, status=exchange.status),
        **found,
        **_known(stream=exchange.stream, retry_at_ns=exchange.retry_at_ns),
        "request_bytes": exchange.request_bytes,
        "response_bytes": exchange.response_bytes,
        "latency_ns": mono_ns - exchange.started_mono_ns,
        "sent": "yes" if exchange.was_sent else "no",
    }


def _identity(exchange: "Exchange") -> dict[str, Any]:
    return {
        "x": exchange.id,
        "instance": exchange.instance_id,
        "run": exchange.run_id,
        "method": exchange.head.method[:40],
        "path": exchange.head.path[:PATH_LIMIT],
        "family": exchange.family,
    }


def found(exchange: "Exchange", *, header_request_id: str | None) -> dict[str, Any]:
    """Return what the answer told: counts, the usage object behind them, model, tier, id, time to the first token."""
    tally, dialect = exchange.tally, exchange.dialect
    if tally is None or dialect is None:
        return _known(request_id=header_request_id)
    measured, raw = exchange.measured, tally.usage
    spoke = tally.spoke_at_ns
    return _known(
        counts=measured.counts.to_json() if measured else None,
        raw_usage=usage.reduce(raw) if raw else None,
        reported_cost_nanousd=cost.reported(raw, dialect.shape.cost) if raw else None,
        model=tally.model,
        service_tier=tally.service_tier,
        request_id=tally.request_id or header_request_id,
        first_token_ns=spoke - exchange.started_mono_ns if spoke is not None and exchange.stream else None,
    )


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _retry_count(headers: "Headers") -> int | None:
    for name, value in headers:
        if name.lower() == _RETRY_COUNT and value.isdigit() and len(value) < 6:
            return int(value)
    return None

"""What is known of an exchange: what counts, and the facts that decide how much of the truth that is."""

from dataclasses import replace
from typing import TYPE_CHECKING

from kt_gateway.decode.shape import Measured
from kt_gateway.exchange import verdict
from kt_ledger.values import Counts

if TYPE_CHECKING:
    from kt_gateway.exchange.exchange import Exchange


def measured(exchange: "Exchange") -> Measured | None:
    """Return what counts: what the answer reported, and what the request or the dialect tell of any good answer."""
    reported = exchange.tally.measured if exchange.tally else None
    counts = _known_without_usage(exchange)
    if counts is None:
        return reported
    if reported is None:
        return Measured(counts, True, True, False)
    return replace(reported, counts=replace(reported.counts, characters=counts.characters))


def _known_without_usage(exchange: "Exchange") -> Counts | None:
    dialect, tally, status = exchange.dialect, exchange.tally, exchange.status
    if dialect is None or tally is None or tally.error or status is None or status >= 300:
        return None
    if dialect.fixed is not None:
        return dialect.fixed if tally.documents else None
    characters = exchange.asked.characters
    return Counts(characters=characters) if characters is not None else None


def facts(exchange: "Exchange") -> verdict.Facts:
    """Return the facts that the verdict is given by."""
    tally, answer, dialect = exchange.tally, exchange.answer, exchange.dialect
    found = measured(exchange)
    return verdict.Facts(
        metered=exchange.metered,
        status=exchange.status,
        measured=found is not None,
        whole=found is not None and found.whole and not _counted_by_choice(exchange),
        adds_up=found is not None and found.adds_up and tally is not None and not tally.repeated,
        stream=answer is not None and answer.stream,
        done=tally is not None and tally.done,
        finished=tally is not None and tally.finished,
        error=tally is not None and tally.error,
        deferred=tally is not None and tally.deferred,
        unbilled=dialect is not None and dialect.unbilled,
        undecodable=answer is not None and answer.undecodable,
        too_large=answer is not None and answer.too_large,
        faulty=exchange.faults > 0,
        failure=exchange.failure,
    )


def _counted_by_choice(exchange: "Exchange") -> bool:
    # llama.cpp sends one usage event a choice, each with that choice's output: the last is not the sum.
    tally = exchange.tally
    return tally is not None and tally.usage_events > 1 and (exchange.asked.choices or 1) > 1

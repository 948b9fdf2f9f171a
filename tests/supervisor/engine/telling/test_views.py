from dataclasses import replace
from typing import Any

import pytest

from kt_ledger.records import InstanceRow, RunRow, SourceTotals, State, UsageSummary
from kt_ledger.values import Source
from kt_manifest.contract import kinds
from kt_supervisor.engine.telling import views
from kt_supervisor.engine.telling.views import Known

ADAPTER = kinds.command(["prog"], interactive=False, observe=True)
MEASURED = SourceTotals(events=3, exact=2, unmeasured={"client_gone": 1}, input_tokens=10, output_tokens=4)
OTHER = SourceTotals(events=9, exact=9, input_tokens=1000, output_tokens=1000)


def known(**facts: Any) -> Known:
    row = InstanceRow(id="i", name="bot", kind="command", adapter="", created_at_ns=0, **facts.pop("row", {}))
    return Known(row=row, adapter=ADAPTER, home="/state/agents/bot", **facts)


def test_nothing_used_is_an_exact_zero_without_dollars() -> None:
    usage = views.usage(known())

    assert (0, 0, "all", 0) == (
        usage["cumulative_input_tokens"],
        usage["cumulative_output_tokens"],
        usage["usage_known"],
        usage["unmeasured_calls"],
    )
    assert not [key for key in usage if "dollars" in key or "cached" in key]


def test_the_total_is_the_declared_sources_and_the_other_one_is_shown_beside_it() -> None:
    totals = {Source.ENGINE_OBSERVED: MEASURED, Source.SELF_REPORTED: OTHER}

    document = views.fleet([known(used=UsageSummary(totals=totals))], now_ns=0)

    assert 10 == document["totals"]["total_input_tokens"]
    assert ("partial", 1) == (document["totals"]["usage_known"], document["totals"]["unmeasured_calls"])
    [entry] = document["instances"]
    assert 1000 == entry["usage"]["sources"]["self-reported"]["input_tokens"]
    assert {"client_gone": 1} == entry["usage"]["unmeasured"]


def test_a_fleet_that_measured_nothing_says_none() -> None:
    blind = SourceTotals(events=1, unmeasured={"no_usage": 1})

    totals = views.totals([known(used=UsageSummary(totals={Source.ENGINE_OBSERVED: blind})), known()])

    assert ("none", 1, 0) == (totals["usage_known"], totals["unmeasured_calls"], totals["total_input_tokens"])


def test_the_contracts_fields_are_all_there() -> None:
    entry = views.entry(known(), now_ns=0)

    wanted = {
        "name",
        "kind",
        "state",
        "restart_count",
        "restart_policy",
        "budget",
        "usage",
        "metering_source",
        "agent_home",
    }
    assert set() == wanted - set(entry)
    assert entry["budget"] is None
    assert 2 == views.shown(known(), now_ns=0)["schema_version"]
    assert {"schema_version": 2, "totals": views.totals([])} == views.used_by_all([])


def test_a_run_shows_its_process_or_its_exit() -> None:
    run = RunRow(id="r", instance_id="i", token="secret", state="live", agent_pid=7, started_at_ns=10**9)
    over = RunRow(
        id="r", instance_id="i", token="secret", state="ended", exit_code=3, started_at_ns=0, ended_at_ns=5
    )

    live = views.entry(known(run=run, row={"state": State.RUNNING}), now_ns=61 * 10**9)
    ended = views.entry(known(run=over, row={"state": State.FAILED, "cause": {"kind": "crashed"}}), now_ns=0)

    assert (7, 60, "1970-01-01T00:00:01Z") == (live["pid"], live["uptime_s"], live["started_at"])
    assert ({"code": 3, "signal": None}, {"kind": "crashed"}) == (ended["exit"], ended["failed_cause"])
    assert "secret" not in str(live) + str(ended)
    assert "pid" not in ended


REPORTING = kinds.command(["prog"], interactive=False, observe=False)
SAID = SourceTotals(events=2, exact=2, input_tokens=10, output_tokens=4)


@pytest.mark.parametrize(
    ("sums", "uncounted", "word"),
    [
        ({Source.SELF_REPORTED: SAID}, False, "all"),
        ({Source.SELF_REPORTED: SAID}, True, "partial"),
        ({}, True, "none"),
        ({}, False, "all"),
    ],
)
def test_what_was_said_and_not_counted_makes_reported_sums_a_lower_bound(
    sums: dict[Source, SourceTotals], uncounted: bool, word: str
) -> None:
    used = UsageSummary(totals=sums, run_totals=sums, uncounted=uncounted, run_uncounted=False)
    reporting = replace(known(used=used), adapter=REPORTING)

    usage = views.usage(reporting)

    assert (word, "all") == (usage["usage_known"], usage["current_run_usage_known"])
    assert [word] * len(sums) == [one["usage_known"] for one in usage["sources"].values()]
    assert word == views.totals([reporting])["usage_known"]


def test_what_an_agent_says_badly_takes_nothing_from_what_was_observed() -> None:
    totals = {Source.ENGINE_OBSERVED: replace(MEASURED, unmeasured={}), Source.SELF_REPORTED: SAID}

    usage = views.usage(known(used=UsageSummary(totals=totals, uncounted=True)))

    assert "partial" == usage["sources"]["self-reported"]["usage_known"]
    assert "all" == usage["sources"]["engine-observed"]["usage_known"]


def test_removed_agents_keep_their_usage_by_id() -> None:
    gone = known(used=UsageSummary(totals={Source.ENGINE_OBSERVED: MEASURED}), row={"removed_at_ns": 10**9})

    document = views.used_by_removed([gone])

    [one] = document["removed"]
    assert ("bot", "i", "1970-01-01T00:00:01Z", 10) == (
        one["name"],
        one["id"],
        one["removed_at"],
        one["usage"]["cumulative_input_tokens"],
    )
    assert 10 == document["totals"]["total_input_tokens"]

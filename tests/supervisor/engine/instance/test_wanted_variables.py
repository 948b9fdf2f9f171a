from collections.abc import Sequence
from pathlib import Path

import pytest

from kt_ledger.clock import SystemClock
from kt_ledger.layout import StateLayout
from kt_ledger.records import InstanceRow
from kt_manifest.configuration import config_file
from kt_manifest.configuration.layers import Entry
from kt_manifest.contract import kinds
from kt_supervisor.engine.instance import wanted_variables
from kt_supervisor.engine.instance.current_settings import CurrentSettings


@pytest.fixture
def row(state: StateLayout) -> InstanceRow:
    state.home("bot").mkdir(parents=True)
    adapter = kinds.command(("true",), interactive=False, observe=True).to_json()
    return InstanceRow(id="i", name="bot", kind="command", adapter=adapter, created_at_ns=1)


def _entries(state: StateLayout, row: InstanceRow) -> Sequence[Entry]:
    return CurrentSettings(state, clock=SystemClock()).for_a_fresh_start(row)


def put(state: StateLayout, key: str, value: str) -> None:
    config_file.set(Path(state.home("bot")) / "config.toml", key, value)


def test_the_names_that_settings_refer_to_are_wanted_and_no_value_is_told(
    state: StateLayout, row: InstanceRow
) -> None:
    put(state, "agent.A", "x ${secret:ONE} ${secret:TWO}")
    put(state, "metering.upstream_api_key", "secret:THREE")

    told = wanted_variables.describe(row, _entries(state, row), given={"agent.B": "secret:FOUR"})

    assert ["FOUR", "ONE", "THREE", "TWO"] == told["secrets"]
    assert "PATH" in told["inherit"]["names"]
    assert "LC_" in told["inherit"]["beginnings"]
    assert {} == told["remarks"]


def test_an_override_of_a_start_is_stronger_than_what_is_set_beside_it(
    state: StateLayout, row: InstanceRow
) -> None:
    settings = CurrentSettings(state, clock=SystemClock())
    entries = settings.for_a_fresh_start(row, {"agent.B": "secret:OVER"})

    told = wanted_variables.describe(row, entries, given={"agent.B": "secret:UNDER"})

    assert ["OVER"] == told["secrets"]


def test_a_list_of_ones_own_takes_the_place_of_the_default(state: StateLayout, row: InstanceRow) -> None:
    put(state, "env.inherit", "ONLY_* THIS")

    told = wanted_variables.describe(row, _entries(state, row), given={})

    assert (["THIS"], ["ONLY_"]) == (told["inherit"]["names"], told["inherit"]["beginnings"])


def test_what_is_said_of_a_key_that_stays_outside_is_told_with_it(
    state: StateLayout, row: InstanceRow
) -> None:
    told = wanted_variables.describe(row, _entries(state, row), given={})
    inherited = wanted_variables.describe(
        row, _entries(state, row), given={"env.inherit": "@default OPENAI_API_KEY"}
    )

    assert "secret:OPENAI_API_KEY" in told["remarks"]["OPENAI_API_KEY"]
    assert "OPENAI_API_KEY" not in inherited["remarks"]
    assert "ANTHROPIC_API_KEY" in inherited["remarks"]


def test_the_settings_of_all_agents_need_secrets_alone(state: StateLayout) -> None:
    config_file.set(state.fleet_config, "agent.A", "${secret:ONE}")
    entries = CurrentSettings(state, clock=SystemClock()).of_fleet().entries

    told = wanted_variables.describe_fleet(entries, given={"model": "secret:TWO"})

    assert {"inherit": {}, "secrets": ["ONE", "TWO"], "remarks": {}} == told

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_manifest.contract import kinds, manifest, snapshot, snapshot_document
from kt_manifest.contract.capability import Declaration, Level, Support
from kt_manifest.contract.snapshot import Adapter, EnvTarget, FileTarget, FlagTarget, Rule, Template

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
TEMPLATES = st.builds(
    Template,
    exec=TEXT,
    args=st.lists(TEXT, max_size=3).map(tuple),
    env=st.dictionaries(TEXT, TEXT, max_size=2),
)
SUPPORTS = st.builds(
    Support, linux=st.sampled_from(Level), macos=st.sampled_from(Level), windows=st.sampled_from(Level)
)
TARGETS = st.one_of(
    st.builds(EnvTarget, TEXT), st.builds(FlagTarget, TEXT), st.builds(FileTarget, TEXT, TEXT)
)
READIES = st.one_of(
    st.builds(snapshot.Ready, line=TEXT, stream=st.sampled_from(snapshot.STREAMS)),
    st.builds(snapshot.Ready, port=TEXT, deadline_s=st.floats(0.1, 3600)),
    st.builds(snapshot.Ready, http=TEXT),
    st.builds(snapshot.Ready, command=st.lists(TEXT, min_size=1, max_size=3).map(tuple)),
)
ADAPTERS = st.builds(
    Adapter,
    kind=TEXT,
    display_name=st.none() | TEXT,
    start=st.none() | TEMPLATES,
    stop=st.none() | TEMPLATES,
    pause=st.none() | TEMPLATES,
    resume=st.none() | TEMPLATES,
    declaration=st.builds(Declaration, pause=SUPPORTS, interaction=SUPPORTS),
    metering_source=st.sampled_from(snapshot.SOURCES),
    channel=st.sampled_from(snapshot.CHANNELS),
    mapping=st.lists(st.builds(Rule, TEXT, TARGETS), max_size=3).map(tuple),
    contract_version=st.none() | TEXT,
    ready=st.none() | READIES,
)


@given(ADAPTERS)
def test_every_adapter_comes_back_from_its_json(adapter: Adapter) -> None:
    text = adapter.to_json()

    assert adapter == Adapter.from_json(text)
    assert text == Adapter.from_json(text).to_json()


def test_the_json_is_the_one_that_was_frozen_yesterday(valid: str) -> None:
    """A golden: what an earlier version wrote must stay readable, so it is pinned as text."""
    golden = (
        '{"schema_version":1,"kind":"my-agent","display_name":"My Agent","contract_version":"1.0.0","lifecycle":'
        '{"start":{"exec":"my-agent","args":["--serve"],"env":{"LOG_LEVEL":"info"}},"stop":{"exec":"my-agent","args":'
        '["--shutdown"],"env":{}}},"capabilities":{"pause":{"linux":"guaranteed","macos":"guaranteed","windows":'
        '"best-effort"},"interaction":{"linux":"guaranteed","macos":"guaranteed","windows":"guaranteed"}},'
        '"metering_source":"self-reported","channel":"stdio","mapping":[{"key":"model","env":"MODEL"}]}'
    )
    adapter = manifest.parse(valid, origin="x")

    assert golden == adapter.to_json()
    assert adapter == Adapter.from_json(golden)


def test_a_field_of_a_later_minor_is_ignored_and_an_optional_one_may_be_absent(valid: str) -> None:
    adapter = manifest.parse(valid, origin="x")
    facts = json.loads(adapter.to_json())
    facts["readiness"] = {"probe": "tcp"}
    facts["lifecycle"]["reload"] = {"exec": "x"}
    del facts["contract_version"], facts["channel"]

    assert dataclasses.replace(adapter, contract_version=None) == Adapter.from_json(json.dumps(facts))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "3",
        '"x"',
        "{}",
        '{"schema_version": 2}',
        '{"schema_version": "1"}',
        '{"schema_version": 1}',
        "[" * 99999,
    ],
    ids=range(10),
)
def test_what_is_no_snapshot_is_a_named_error(text: str) -> None:
    with pytest.raises(snapshot_document.SnapshotUnreadable) as caught:
        Adapter.from_json(text)

    assert caught.value.exit_code == 1
    assert all(part in str(caught.value) for part in (caught.value.got, caught.value.wanted, caught.value.do))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", 3),
        ("display_name", 3),
        ("lifecycle", []),
        ("lifecycle", {"start": {"exec": 3, "args": [], "env": {}}}),
        ("capabilities", {"pause": {"linux": "sure"}}),
        ("metering_source", "none"),
        ("channel", "tcp"),
        ("mapping", {}),
        ("mapping", [{"key": "a"}]),
        ("mapping", [{"key": "a", "env": 1}]),
        ("mapping", None),
    ],
    ids=range(11),
)
def test_a_damaged_field_is_a_named_error_or_nothing_at_all(valid: str, field: str, value: object) -> None:
    facts = json.loads(manifest.parse(valid, origin="x").to_json())
    facts[field] = value

    if (field, value) == ("mapping", {}):
        assert Adapter.from_json(json.dumps(facts)).mapping == ()
        return
    with pytest.raises(snapshot_document.SnapshotUnreadable):
        Adapter.from_json(json.dumps(facts))


def test_an_adapter_is_frozen_and_knows_what_it_maps() -> None:
    adapter = kinds.builtin("mock")

    assert adapter.maps("model")
    assert not adapter.maps("metering.base_url")
    with pytest.raises(dataclasses.FrozenInstanceError):
        adapter.kind = "x"  # type: ignore[misc]
    assert dataclasses.asdict(adapter)["kind"] == "mock"


@pytest.mark.parametrize(
    "program", ["agent", "my agent", "a.sh", "/bin/a", "C:\\a b\\c.exe", "c:/x", "\\\\host\\s\\x", "..a"]
)
def test_a_program_is_a_bare_name_or_an_absolute_path(program: str) -> None:
    assert snapshot.fault_in_exec(program) is None


@pytest.mark.parametrize(
    "program", ["", " ", "./a", "../a", "a/b", "a\\b", ".", "..", "~/a", "C:a\\b", "a\0", "é:\\x", "a/"]
)
def test_anything_else_is_no_program(program: str) -> None:
    assert snapshot.fault_in_exec(program)


def test_a_program_that_is_no_text_is_another_checks_business() -> None:
    assert snapshot.fault_in_exec(3) is None


def test_an_observed_agent_that_nothing_leads_to_its_listener_goes_unseen() -> None:
    observed = kinds.command(["x"], interactive=False, observe=True)
    by_origin = dataclasses.replace(observed, mapping=(Rule("metering.origin", EnvTarget("O")),))
    not_led = dataclasses.replace(observed, mapping=(Rule("model", EnvTarget("M")),))

    assert [adapter.goes_unseen() for adapter in (observed, by_origin, not_led)] == [False, False, True]
    assert not kinds.command(["x"], interactive=False, observe=False).goes_unseen()

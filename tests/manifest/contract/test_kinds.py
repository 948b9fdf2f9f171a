from pathlib import Path

import pytest

from kt_manifest.contract import capability, kinds
from kt_manifest.contract.snapshot import EnvTarget, Rule, Template


def test_the_mock_launches_nothing_and_maps_two_keys() -> None:
    mock = kinds.builtin("mock")

    assert (mock.kind, mock.start, mock.metering_source) == ("mock", None, "self-reported")
    assert mock.mapping == (
        Rule("model", EnvTarget("MODEL")),
        Rule("memory.dir", EnvTarget("KTESIO_MEMORY_DIR")),
    )
    assert [
        tuple(capability.project(mock.declaration, system).values())
        for system in ("linux", "macos", "windows")
    ] == [("guaranteed", "guaranteed")] * 2 + [("best-effort", "guaranteed")]


def test_a_command_reports_for_itself_and_can_be_paused_on_unix() -> None:
    adapter = kinds.command(["prog", "-x", ""], interactive=False, observe=False)

    assert Template(exec="prog", args=("-x", "")) == adapter.start
    assert (adapter.kind, adapter.metering_source, adapter.mapping) == ("command", "self-reported", ())
    assert [
        tuple(capability.project(adapter.declaration, system).values())
        for system in ("linux", "macos", "windows")
    ] == [("guaranteed", "unsupported")] * 2 + [("unsupported", "unsupported")]


def test_an_interactive_command_reads_its_input() -> None:
    adapter = kinds.command(["prog"], interactive=True, observe=False)

    assert capability.project(adapter.declaration, "linux")["interaction"] == "guaranteed"


def test_an_observed_command_is_led_to_its_listener() -> None:
    adapter = kinds.command(["/bin/prog"], interactive=False, observe=True)

    assert adapter.metering_source == "engine-observed"
    assert adapter.mapping == (
        Rule("metering.base_url", EnvTarget("OPENAI_BASE_URL")),
        Rule("metering.base_url", EnvTarget("OPENAI_API_BASE")),
        Rule("metering.upstream_api_key", EnvTarget("OPENAI_API_KEY")),
    )


def test_a_relative_program_is_taken_from_where_it_was_typed() -> None:
    adapter = kinds.command(["./bin/x", "./y"], interactive=False, observe=False, cwd=Path("/home/me"))
    bare = kinds.command(["x"], interactive=False, observe=False, cwd=Path("/home/me"))

    assert adapter.start == Template(exec="/home/me/bin/x", args=("./y",))
    assert bare.start == Template(exec="x")


@pytest.mark.parametrize(
    "argv", [[], [""], [" "], ["./x"], ["a/b"], ["x\0"], ["x", "\0"], ["x", "\ud800"]], ids=range(8)
)
def test_what_cannot_be_started_is_no_command(argv: list[str]) -> None:
    with pytest.raises(kinds.CommandInvalid, match="--kind command -- PROGRAM") as caught:
        kinds.command(argv, interactive=False, observe=False)

    assert caught.value.exit_code == 2


def test_the_command_kind_needs_a_command() -> None:
    with pytest.raises(kinds.CommandInvalid, match="no program"):
        kinds.builtin("command")


def test_an_unknown_kind_is_told_the_known_ones() -> None:
    with pytest.raises(kinds.UnknownKind, match=r"did you mean mock\?") as caught:
        kinds.builtin("mok")

    assert caught.value.exit_code == 2
    assert "command, mock" in str(caught.value)
    with pytest.raises(kinds.UnknownKind, match="no close match"):
        kinds.builtin("hermes-agent\n")


def test_both_built_in_kinds_are_known() -> None:
    assert frozenset({"mock", "command"}) == kinds.BUILTIN

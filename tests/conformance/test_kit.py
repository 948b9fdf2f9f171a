"""Whole runs: the report's shape, the shipped adapters, and every way in which a run can end."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.conftest import FAKE, OBSERVED, Declared, fake

from kt_conformance import catalogue, kit, report
from kt_conformance.report import Report, Result
from kt_conformance.rig import Rig
from kt_conformance.stage import Stage
from kt_manifest.contract import manifest

REPOSITORY = Path(__file__).resolve().parents[2]
SHIPPED = {
    "self-reporting": ("--emit-usage", "3", "--replay-usage", "--heartbeat-ms", "100", "--spawn-child"),
    "openai-compatible": ("--observed-calls", "2", "--stream-calls", "1", "--spawn-child"),
}
APPLY_TO_ALL = {
    "capability_edges",
    "lifecycle",
    "pause",
    "config_mapping",
    "restart",
    "adoption",
    "stop_tree",
    "isolation_and_updates",
}
APPLY = {
    "self-reporting": APPLY_TO_ALL | {"metering_self_reported"},
    "openai-compatible": APPLY_TO_ALL
    | {"metering_engine_observed", "streamed_observed_metering", "listener_token"},
}


def applied(results: tuple[Result, ...]) -> set[str]:
    return {result.section for result in results if result.status != report.NOT_APPLICABLE}


def whole_run(rig: Rig, name: str) -> Report:
    """One of them as everybody runs the kit; the other with the engine that is there already."""
    path, arguments = REPOSITORY / "adapters" / name, ("-u", FAKE, *SHIPPED[name])
    if name == "openai-compatible":
        return kit.run(path, program=sys.executable, arguments=arguments)
    found = kit.subject.load(path, program=sys.executable, arguments=arguments)
    results = tuple(kit.one(found, rig, section) for section in catalogue.SECTIONS)
    return Report(
        contract_version="1.0.0",
        adapter_kind=found.adapter.kind,
        sections=results,
        stand_in=found.stand_in,
    )


@pytest.mark.parametrize(
    "name", ["self-reporting", pytest.param("openai-compatible", marks=pytest.mark.long)]
)
def test_a_shipped_adapter_holds_what_it_declares(rig: Rig, name: str) -> None:
    """Their program is the reader's own: the fake agent stands in for it, and is driven as it would be."""
    found = whole_run(rig, name)

    assert [] == [(result.section, result.reason) for result in found.failures]
    assert (sys.executable, "-u", FAKE, *SHIPPED[name]) == found.stand_in
    assert APPLY[name] == applied(found.sections)
    assert sum(result.driven_by == report.PROBE for result in found.sections) <= 2
    assert_shape(found.document(), name)


def assert_shape(document: dict[str, Any], kind: str | None) -> None:
    assert 1 == document["schema_version"]
    assert "1.0.0" == document["contract_version"]
    assert kind == document["adapter_kind"]
    assert list(catalogue.SECTIONS) == [section["section"] for section in document["sections"]]
    for section in document["sections"]:
        assert {"section", "result", "driven_by", "duration_s", "warnings"} == set(section)
        told = {"status"} | ({"reason"} if section["result"]["status"] != "pass" else set())
        assert told == set(section["result"])
        assert section["result"]["status"] in ("pass", "fail", "not_applicable")
        assert section["driven_by"] in ("subject", "probe", None)
    json.dumps(document)


def test_the_names_of_the_contract_come_first() -> None:
    assert (
        "capability_edges",
        "lifecycle",
        "pause",
        "config_mapping",
        "metering_self_reported",
        "metering_engine_observed",
        "memory",
        "interaction",
    ) == catalogue.CONTRACT


def test_a_probe_that_cannot_call_is_not_said_to_have_called(rig: Rig, tmp_path: Path) -> None:
    """The address arrives in a form of its own: the subject reads it, the kit's fake agent would not."""
    form = """[kt.config."metering.base_url"]
env = "OPENAI_BASE_URL"
format = "text"
template = "${metering.base_url}"
"""
    mapping = {key: target for key, target in OBSERVED.items() if key != "metering.base_url"}
    declared = Declared(
        fake("--observed-calls", "1"), source="engine-observed", mapping=mapping, more=form
    ).subject(tmp_path)

    result = kit.one(declared, rig, "streamed_observed_metering")

    assert report.NOT_APPLICABLE == result.status, result
    assert "[kt.test] stream" in (result.reason or "")
    assert () == result.warnings


def test_a_reason_is_one_line() -> None:
    told = "bot did not start: it ended; its last lines:\n  one\n\n  two\n"

    assert "bot did not start: it ended; its last lines: one | two" == report.in_one_line(told)
    assert "" == report.in_one_line("")


def test_memory_interaction_and_files_are_driven(rig: Rig, tmp_path: Path) -> None:
    declared = Declared(
        fake("--echo-stdin"),
        interaction="guaranteed",
        mapping={
            "memory.dir": 'file = { path = "etc/agent.toml", key = "memory.place" }',
            "model": 'flag = "--model"',
        },
        more='[kt.test]\ndump = ["--dump", "{path}"]',
    ).subject(tmp_path)

    for section in ("memory", "interaction", "config_mapping", "capability_edges"):
        result = kit.one(declared, rig, section)

        assert ("pass", "subject") == (result.status, result.driven_by), result


def test_an_agent_that_ends_with_its_work_is_driven(rig: Rig, tmp_path: Path) -> None:
    declared = Declared(
        fake("--observed-calls", "2", "--end-when-done"),
        source="engine-observed",
        mapping=OBSERVED,
        more='[kt.test]\nends = "when-done"',
    ).subject(tmp_path)

    for section in ("lifecycle", "metering_engine_observed", "pause", "config_mapping"):
        result = kit.one(declared, rig, section)

        assert ("pass", "subject") == (result.status, result.driven_by), result


def test_an_agent_that_works_when_it_is_spoken_to_is_driven(rig: Rig, tmp_path: Path) -> None:
    declared = Declared(
        fake("--ask-stdin"),
        source="engine-observed",
        interaction="best-effort",
        mapping=OBSERVED,
        more='[kt.test]\nsay = "Say {nonce}."',
    ).subject(tmp_path)

    for section in ("metering_engine_observed", "interaction"):
        result = kit.one(declared, rig, section)

        assert ("pass", "subject") == (result.status, result.driven_by), result


def test_a_program_that_is_not_there_passes_nothing_that_it_should_do(rig: Rig, tmp_path: Path) -> None:
    declared = Declared(("no-such-agent",)).subject(tmp_path)

    for section in ("lifecycle", "pause", "metering_self_reported", "restart", "stop_tree"):
        result = kit.one(declared, rig, section)

        assert report.FAIL == result.status
        assert "install no-such-agent, or name a stand-in" in (result.reason or "")


def test_a_fault_of_the_kit_is_a_fail_with_its_reason(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(stage: Stage) -> None:
        raise LookupError("lost")

    monkeypatch.setitem(catalogue.SECTIONS, "pause", breaks)

    result = kit.one(Declared(fake()).subject(tmp_path), rig, "pause")

    assert (report.FAIL, "the kit itself failed: LookupError: lost") == (result.status, result.reason)


def test_a_section_ends_with_its_time(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def waits(stage: Stage) -> None:
        stage.deadline.until(lambda: None, "something that never comes")

    monkeypatch.setitem(catalogue.SECTIONS, "pause", waits)

    result = kit.one(Declared(fake()).subject(tmp_path), rig, "pause", within_s=0.3)

    assert "wanted something that never comes" in (result.reason or "")
    assert result.duration_s < 5


def test_a_section_without_time_is_not_begun(rig: Rig, tmp_path: Path) -> None:
    result = kit.one(Declared(fake()).subject(tmp_path), rig, "pause", within_s=0)

    assert "was not begun" in (result.reason or "")


def test_a_manifest_that_is_refused_fails_everything(tmp_path: Path) -> None:
    (tmp_path / "adapter.toml").write_text('contract_version = "2.0.0"\n')

    found = kit.run(tmp_path)

    assert {report.FAIL} == {result.status for result in found.sections}
    assert all("missing [adapter]" in (result.reason or "") for result in found.sections)
    assert_shape(found.document(), None)


def test_without_an_engine_everything_fails_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place for its state directory is a file: no engine can be started there."""
    no_folder = tmp_path / "file"
    no_folder.write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(no_folder))
    (tmp_path / "adapter.toml").write_text(Declared(fake()).text())

    found = kit.run(tmp_path)

    assert {report.FAIL} == {result.status for result in found.sections}
    assert all("the kit could not run" in (result.reason or "") for result in found.sections)
    assert_shape(found.document(), "under-test")


def test_no_manifest_and_no_section_are_the_callers_fault(tmp_path: Path) -> None:
    with pytest.raises(manifest.ManifestNotFound):
        kit.run(tmp_path / "nothing")
    with pytest.raises(kit.UnknownSection, match="did you mean pause"):
        kit.run(tmp_path, sections=["pauze"])


def test_progress_is_told(tmp_path: Path) -> None:
    (tmp_path / "adapter.toml").write_text("")
    told: list[str] = []

    kit.run(tmp_path, sections=["pause"], ends=lambda result: told.append(result.section))

    assert ["pause"] == told


def test_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "adapter.toml").write_text(Declared(fake("--ignore-term", "--spawn-child")).text())
    with Rig() as rig:
        found = kit.subject.load(tmp_path)
        stage = Stage(found, rig, kit.Deadline(20))
        with stage.agent() as instance:
            stage.start(instance)
            stage.deadline.until(lambda: len(instance.tree()) > 1, "its child")
            # engine, gateway or not, keeper, agent, child
            assert len(rig.ours()) >= 4

    assert [] == rig.ours()
    assert not rig.root.exists()


@pytest.mark.long
def test_an_engine_that_does_not_answer_is_ended_with_its_agent(tmp_path: Path) -> None:
    (tmp_path / "adapter.toml").write_text(Declared(fake("--spawn-child")).text())
    with Rig() as rig:
        stage = Stage(kit.subject.load(tmp_path), rig, kit.Deadline(20))
        with stage.agent() as instance:
            stage.start(instance)
        os.kill(int(rig.kt.engine_status()["pid"]), signal.SIGSTOP)

    assert [] == rig.ours()
    assert not rig.root.exists()


@pytest.mark.parametrize("wanted", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, wanted: signal.Signals) -> None:
    (tmp_path / "adapter.toml").write_text(Declared(fake("--heartbeat-ms", "50")).text())
    command = [sys.executable, "-m", "kt_cli.main", "adapter", "test", str(tmp_path)]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as kt:
        assert kt.stderr is not None
        assert kt.stderr.readline().startswith("capability_edges")
        kt.send_signal(wanted)
        _, said = kt.communicate(timeout=60)

    assert 130 == kt.returncode, said
    assert [] == list(tmp_path.glob("kt-tck-*"))
    assert "Traceback" not in said


def test_results_can_be_asked_by_name() -> None:
    one = Result(section="pause", status=report.PASS)
    found = Report(contract_version="1.0.0", adapter_kind="x", sections=(one,))

    assert found.passed
    assert one is found.section("pause")

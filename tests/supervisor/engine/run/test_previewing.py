import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kt_ledger.clock import SystemClock
from kt_ledger.layout import StateLayout
from kt_ledger.records import InstanceRow, RunRow
from kt_manifest.configuration import config_file
from kt_manifest.configuration.layers import Entry
from kt_manifest.contract import kinds
from kt_manifest.contract.declared_posture import Isolation, Posture
from kt_manifest.contract.snapshot import Adapter, EnvTarget, FileTarget, Ready, Rule, Shape
from kt_supervisor.engine.instance.current_settings import CurrentSettings
from kt_supervisor.engine.run import launching, previewing
from kt_supervisor.engine.run.previewing import Difference

CALLER = {"PATH": os.environ["PATH"], "HOME": "/home/x"}
SLEEP = (sys.executable, "-c", "import time; print(flush=True); time.sleep(600)")
RULES = (Rule("model", FileTarget("agent.toml", "model")), Rule("acp.command", EnvTarget("TOOL")))


@pytest.fixture
def files(tmp_path: Path) -> StateLayout:
    layout = StateLayout(tmp_path)
    layout.home("bot").mkdir(parents=True)
    return layout


def _entries(files: StateLayout, row: InstanceRow) -> Callable[[], Sequence[Entry]]:
    return lambda: CurrentSettings(files, clock=SystemClock()).for_a_fresh_start(row)


def _row(*, argv: tuple[str, ...] = SLEEP, **declared: object) -> InstanceRow:
    adapter = replace(
        kinds.command(argv, interactive=False, observe=False), **({"mapping": RULES} | declared)
    )  # type: ignore[arg-type]
    return InstanceRow(id="i", name="bot", kind="command", adapter=adapter.to_json(), created_at_ns=1)


def _set(files: StateLayout, key: str, value: str) -> None:
    config_file.set(files.home("bot") / "config.toml", key, value)


def _everything(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(root.rglob("*"))
    }


def test_what_a_start_would_run_is_what_a_start_runs_and_nothing_is_written(files: StateLayout) -> None:
    _set(files, "model", "m")
    row = _row(posture=Posture(isolation=Isolation(env={"ROOT": "root"})))
    before = _everything(files.root)

    found = previewing.preview(files, row, entries=_entries(files, row), environment=CALLER, run=None)

    assert before == _everything(files.root)
    run = RunRow(id=launching.NEXT_RUN, instance_id="i", token=launching.NEXT_TOKEN, started_at_ns=1)
    program = launching.program(
        launching.plan(files, row, entries=_entries(files, row)(), environment=CALLER), row, run, port=None
    )
    assert found.launch is not None
    assert (program.argv, program.env) == ((found.executable, *found.launch.argv[1:]), found.launch.env)
    assert found.launch.files[0].content == (files.home("bot") / "agent.toml").read_text()
    assert ((), ("root",)) == (found.refusals, found.launch.folders)
    assert (files.home("bot") / "root").is_dir()


def test_an_observed_agent_that_never_ran_is_shown_with_a_listener_to_come(files: StateLayout) -> None:
    adapter = kinds.command(SLEEP, interactive=False, observe=True)
    row = InstanceRow(id="i", name="bot", kind="command", adapter=adapter.to_json(), created_at_ns=1)
    refused = previewing.preview(files, row, entries=_entries(files, row), environment=CALLER, run=None)
    _set(files, "metering.upstream_base_url", "https://provider/v1")
    _set(files, "metering.upstream_api_key", "sk-canary")

    found = previewing.preview(files, row, entries=_entries(files, row), environment=CALLER, run=None)

    assert refused.launch is None
    assert "metering.upstream_base_url" in refused.refusals[0]
    assert found.launch is not None
    assert found.launch.env["OPENAI_BASE_URL"].endswith(f"/{launching.NEXT_TOKEN}/v1")
    assert {"sk-canary", launching.NEXT_TOKEN} <= set(found.hidden)
    assert "sk-canary" not in repr(found)


@pytest.mark.parametrize(
    ("setting", "declared", "said"),
    [
        (("agent.A", "secret:NOWHERE"), {}, "NOWHERE"),
        (("agent.A", "{env:GONE}"), {"posture": Posture(substitution=("{env:VAR}",))}, "agent.A names GONE"),
        (("agent.A", "1"), {"argv": ("/nowhere/prog",)}, "/nowhere/prog"),
        (("agent.A", "1"), {"ready": Ready(port="${PORT}")}, "PORT"),
    ],
)
def test_what_would_refuse_a_start_is_told(
    files: StateLayout, setting: tuple[str, str], declared: dict[str, object], said: str
) -> None:
    _set(files, *setting)

    found = previewing.preview(
        files, _row(**declared), entries=_entries(files, _row(**declared)), environment=CALLER, run=None
    )  # type: ignore[arg-type]

    [refusal] = found.refusals
    assert said in refusal


def test_what_can_be_said_without_a_secret_is_said(files: StateLayout) -> None:
    _set(files, "agent.A", "secret:NOWHERE")
    _set(files, "agent.PATH", "/nowhere")

    found = previewing.preview(
        files, _row(argv=("prog",)), entries=_entries(files, _row()), environment=CALLER, run=None
    )

    assert found.launch is not None
    assert "secret:****" == found.launch.env["A"]
    assert ["secret:NOWHERE" in found.refusals[0], "correct agent.PATH" in found.refusals[1]] == [True, True]


def test_a_mistake_of_ours_is_no_refusal(files: StateLayout) -> None:
    with pytest.raises(AttributeError):
        previewing.preview(files, None, entries=_entries(files, None), environment=CALLER, run=None)  # type: ignore[arg-type]


@pytest.fixture
def agent(files: StateLayout) -> Iterator[RunRow]:
    """An agent that runs as an earlier start would have started it."""
    _set(files, "model", "m")
    row, run = _row(), RunRow(id="r", instance_id="i", token="t", started_at_ns=1)
    program = launching.program(
        launching.plan(files, row, entries=_entries(files, row)(), environment=CALLER), row, run, port=None
    )
    with subprocess.Popen(program.argv, env=program.env, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()  # before that, the kernel may not know its command line yet
        yield replace(run, agent_pid=child.pid)
        child.kill()


def _differences(
    files: StateLayout, run: RunRow, row: InstanceRow, **caller: str
) -> tuple[Difference, ...] | None:
    found = previewing.preview(files, row, entries=_entries(files, row), environment=CALLER | caller, run=run)
    assert found.running is not None
    assert (run.id, run.agent_pid) == (found.running.run_id, found.running.pid)
    return found.running.differences


def test_an_agent_that_would_be_started_alike_differs_in_nothing(files: StateLayout, agent: RunRow) -> None:
    assert () == _differences(files, agent, _row())


def test_everything_in_which_it_would_differ_is_named_without_values(
    files: StateLayout, agent: RunRow
) -> None:
    _set(files, "model", "other")
    _set(files, "agent.NEW", "1")

    found = _differences(files, agent, _row(argv=(*SLEEP, "more")), HOME="/home/y", LANG="C")

    assert (
        Difference("command line", "", "changed"),
        Difference("variable", "HOME", "changed"),
        Difference("variable", "LANG", "new"),
        Difference("variable", "NEW", "new"),
        Difference("file", "agent.toml", "changed"),
    ) == found


def test_a_file_that_would_go_or_come_is_named(files: StateLayout, agent: RunRow) -> None:
    config_file.unset(files.home("bot") / "config.toml", "model")
    gone = _differences(files, agent, _row())
    (files.home("bot") / "agent.toml").unlink()
    nothing = _differences(files, agent, _row())
    _set(files, "model", "m")
    new = _differences(files, agent, _row())

    assert ((Difference("file", "agent.toml", "gone"),), ()) == (gone, nothing)
    assert (Difference("file", "agent.toml", "new"),) == new


def test_a_file_of_somebody_else_that_would_become_another_is_named(files: StateLayout) -> None:
    merged = Rule("model", FileTarget("theirs.json", "api.model"), Shape(format="json", merge=True))
    row = _row(mapping=(merged,))
    home = files.home("bot")
    (home / "theirs.json").write_text('{"mine": 1}')
    _set(files, "model", "m")
    run = RunRow(id="r", instance_id="i", token="t", started_at_ns=1, agent_pid=os.getpid())

    def pending() -> list[Difference]:
        found = _differences(files, run, row) or ()
        return [one for one in found if one.what == "file"]

    changed = [Difference("file", "theirs.json", "changed")]
    assert changed == pending()
    launching.program(
        launching.plan(files, row, entries=_entries(files, row)(), environment=CALLER), row, run, port=None
    )
    assert [] == pending()
    _set(files, "model", "other")
    assert changed == pending()
    config_file.unset(home / "config.toml", "model")
    assert changed == pending()
    (home / "theirs.json").write_text("no json")
    assert changed == pending()


def test_a_process_that_cannot_be_looked_at_is_not_said_to_be_the_same(files: StateLayout) -> None:
    run = RunRow(id="r", instance_id="i", token="t", started_at_ns=1, agent_pid=None)

    assert _differences(files, run, _row()) is None


def test_a_script_behind_its_interpreter_is_the_same(files: StateLayout) -> None:
    script = files.root / "agent.py"
    script.write_text(f"#!{sys.executable}\nimport time; print(flush=True); time.sleep(600)\n")
    script.chmod(0o700)
    row = _row(argv=(str(script), "x"))
    run = RunRow(id="r", instance_id="i", token="t", started_at_ns=1)
    program = launching.program(
        launching.plan(files, row, entries=_entries(files, row)(), environment=CALLER), row, run, port=None
    )
    with subprocess.Popen(program.argv, env=program.env, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()

        found = _differences(files, replace(run, agent_pid=child.pid), row)

        child.kill()
    assert () == found
    assert Adapter.from_json(row.adapter).start is not None

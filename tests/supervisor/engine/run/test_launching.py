import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kt_ledger.clock import SystemClock
from kt_ledger.layout import StateLayout
from kt_ledger.records import InstanceRow, RunRow
from kt_manifest.configuration import config_file, secrets
from kt_manifest.configuration.layers import LayerFault
from kt_manifest.contract import kinds
from kt_manifest.contract.snapshot import Adapter, Ready
from kt_manifest.launch.readiness import ProbeUnresolved
from kt_supervisor.engine.instance.current_settings import CurrentSettings
from kt_supervisor.engine.run import launching, run_environment

CALLER = {"PATH": "/usr/bin:/bin", "HOME": "/home/x", "COLOUR": "blue", "TOKEN": "sk-canary"}
RUN = RunRow(id="r", instance_id="i", token="t", started_at_ns=1)
TELLS = "import json, os, time\nprint(json.dumps(dict(os.environ)), flush=True)\ntime.sleep(600)"


@pytest.fixture
def files(tmp_path: Path) -> StateLayout:
    layout = StateLayout(tmp_path)
    layout.home("bot").mkdir(parents=True)
    return layout


def _row(*, observe: bool = False) -> InstanceRow:
    adapter = kinds.command(["true"], interactive=False, observe=observe)
    return InstanceRow(id="i", name="bot", kind="command", adapter=adapter.to_json(), created_at_ns=1)


def _set(files: StateLayout, **values: Any) -> None:
    for key, value in values.items():
        config_file.set(files.home("bot") / "config.toml", key.replace("__", "."), value)


def _plan(files: StateLayout, row: InstanceRow, *, environment: Mapping[str, str]) -> launching.Plan:
    entries = CurrentSettings(files, clock=SystemClock()).for_a_fresh_start(row)
    return launching.plan(files, row, entries=entries, environment=environment)


def test_an_agent_inherits_what_the_setting_lets_through(files: StateLayout) -> None:
    _set(files, env__inherit=["COLOUR", "PATH"])

    plan = _plan(files, _row(), environment=CALLER)

    assert {"COLOUR": "blue", "PATH": "/usr/bin:/bin"} == dict(plan.base_environment)


def test_a_start_is_repeated_without_its_caller(files: StateLayout) -> None:
    _set(files, env__inherit=["@default", "COLOUR"])
    first = launching.program(_plan(files, _row(), environment=CALLER), _row(), RUN, port=None, files=files)

    kept = run_environment.load(files, "i")
    assert kept is not None
    again = launching.program(_plan(files, _row(), environment=kept), _row(), RUN, port=None, files=files)

    assert first.env == again.env
    assert "blue" == again.env["COLOUR"]


def test_a_secret_of_the_caller_does_not_survive_and_its_name_is_told(files: StateLayout) -> None:
    _set(files, agent__T="secret:TOKEN", env__inherit=["*", "TOKEN"])
    first = launching.program(_plan(files, _row(), environment=CALLER), _row(), RUN, port=None, files=files)
    kept = run_environment.load(files, "i")
    assert kept is not None

    with pytest.raises(secrets.SecretUnresolved, match="secret:TOKEN"):
        _plan(files, _row(), environment=kept)

    assert "sk-canary" == first.env["T"]
    everything = b"".join(path.read_bytes() for path in files.root.rglob("*") if path.is_file())
    assert b"sk-canary" not in everything


def test_a_key_that_an_agent_may_miss_is_told_once_by_its_name(files: StateLayout) -> None:
    _set(files, metering__upstream_base_url="https://provider/v1")
    caller = CALLER | {"OPENAI_API_KEY": "sk-other"}

    plan = _plan(files, _row(observe=True), environment=caller)

    [notice] = plan.notices
    assert "OPENAI_API_KEY of the caller's environment does not reach the agent" in notice
    assert "sk-other" not in notice


@pytest.mark.parametrize(
    "setting",
    [
        {"metering__upstream_api_key": "sk-given"},
        {"agent__OPENAI_API_KEY": "sk-given"},
        {"env__inherit": ["OPENAI_API_KEY"]},
    ],
)
def test_an_agent_that_has_its_key_misses_none(files: StateLayout, setting: dict[str, Any]) -> None:
    _set(files, metering__upstream_base_url="https://provider/v1", **setting)

    plan = _plan(files, _row(observe=True), environment={"OPENAI_API_KEY": "sk-other"})

    assert () == plan.notices


def test_no_setting_speaks_for_another_run(files: StateLayout) -> None:
    _set(files, agent__KT_RUN="another")

    with pytest.raises(LayerFault, match="the engine's own"):
        _plan(files, _row(), environment=CALLER)


def test_a_variable_that_hides_another_kept_value_is_told_without_either(files: StateLayout) -> None:
    _set(files, agent__A="Bearer ${secret:TOKEN}", agent__B="secret:SAME", agent__C="secret:KEPT")
    files.secrets.touch(mode=0o600)
    files.secrets.write_text('TOKEN = "sk-kept-canary"\nSAME = "s"\nKEPT = "k"\n')

    told = _plan(files, _row(), environment={**CALLER, "SAME": "s"}).notices
    without = _plan(files, _row(), environment={"PATH": "/bin"}).notices

    [notice] = told
    assert "secret:TOKEN is what the variable TOKEN of this shell says" in notice
    assert "unset TOKEN" in notice
    assert "canary" not in notice
    assert () == without


def test_a_named_variable_that_is_not_there_is_told(files: StateLayout) -> None:
    _set(files, env__inherit=["@default", "COLOUR", "GONE_API_KEY", "GIVEN", "LC_*"], agent__GIVEN="1")

    [notice] = _plan(files, _row(), environment=CALLER).notices

    assert "env.inherit names GONE_API_KEY, which is not set here: the agent starts without it" == notice


def test_keys_that_nobody_called_a_secret_are_unshown(files: StateLayout) -> None:
    _set(files, env__inherit=["PATH", "MY_API_KEY"], agent__HIS_API_KEY="sk-written", agent__X="plain")

    plan = _plan(files, _row(), environment={**CALLER, "MY_API_KEY": "sk-inherited", "NOT_API_KEY": "sk-not"})

    assert {"sk-inherited", "sk-written"} == plan.unshown


def test_nothing_of_the_engines_own_environment_reaches_an_agent(empty_house: Any) -> None:
    empty_house.variables = {
        "CANARY": "of-the-engine",
        "LC_CANARY": "1",
        "XDG_CANARY": "1",
        "HTTP_PROXY": "http://e",
    }
    house = empty_house.boot()
    house.register("bot", TELLS)
    house.set("bot", "env.inherit", "*")

    house.start("bot", COLOUR="blue")

    said = house.until(lambda: [x["text"] for x in house.said("bot") if "KT_RUN" in x["text"]], "it spoke")
    env = json.loads(said[0])
    assert "blue" == env["COLOUR"]
    assert {"PATH", "COLOUR", "KT_INSTANCE", "KT_RUN", "NO_PROXY", "no_proxy"} == set(env) - {"LC_CTYPE"}


def test_what_is_kept_of_a_start_goes_with_the_instance(house: Any) -> None:
    identity = house.register("bot", "import time\ntime.sleep(600)")["id"]
    house.start("bot", HOME="/home/x")

    kept = run_environment.load(house.files, identity)
    house.ask("DELETE", "/v1/agents/bot?home=retain&force=1")

    assert kept is not None
    assert "/home/x" == kept["HOME"]
    assert not house.files.environment(identity).exists()


def test_a_program_knows_what_to_wait_for_with_the_agents_own_variables(files: StateLayout) -> None:
    _set(files, agent__PORT="8125")
    adapter = replace(Adapter.from_json(_row().adapter), ready=Ready(port="${PORT}", deadline_s=5))
    row = replace(_row(), adapter=adapter.to_json())

    program = launching.program(_plan(files, row, environment=CALLER), row, RUN, port=None)

    assert program.ready is not None
    assert ("port", 8125, 5) == (program.ready.way, program.ready.port, program.ready.deadline_s)
    assert launching.program(_plan(files, _row(), environment=CALLER), _row(), RUN, port=None).ready is None


def test_an_unknown_port_starts_nothing_and_keeps_nothing(files: StateLayout) -> None:
    adapter = replace(Adapter.from_json(_row().adapter), ready=Ready(port="${PORT}"))
    row = replace(_row(), adapter=adapter.to_json())

    with pytest.raises(ProbeUnresolved):
        launching.program(_plan(files, row, environment=CALLER), row, RUN, port=None, files=files)

    assert run_environment.load(files, "i") is None

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kt_ledger.clock import SystemClock
from kt_ledger.layout import StateLayout
from kt_ledger.records import InstanceRow, RunRow
from kt_manifest.configuration import config_file
from kt_manifest.configuration.layers import Entry
from kt_manifest.contract import kinds
from kt_manifest.contract.snapshot import EnvTarget, FileTarget, FlagTarget, Rule, Shape
from kt_supervisor.engine.instance.current_settings import CurrentSettings
from kt_supervisor.engine.run import launching, previewing
from kt_supervisor.engine.run.previewing import Compared, Difference, Preview
from kt_supervisor.engine.telling import launch_view

KEY, OWN, CLEAR, TOKEN = "sk-canary-key", 'own-"canary"', "sk-canary-clear", "token-canary"
RULES = (
    Rule("metering.base_url", EnvTarget("URL")),
    Rule("metering.base_url", FlagTarget("--url")),
    Rule("metering.upstream_api_key", EnvTarget("A_KEY")),
    Rule("model", FileTarget("agent.toml", "key")),
    Rule("acp.command", FlagTarget("--secret")),
    Rule("model", FileTarget("theirs.json", "api.key"), Shape(format="json", merge=True)),
    Rule("agent.TOOL_API_KEY", FileTarget("theirs.json", "tool"), Shape(format="json", merge=True)),
    Rule("agent.BOTH", FlagTarget("--both")),
    Rule("agent.PLAIN", FileTarget("theirs.json", "plain"), Shape(format="json", merge=True)),
)
CALLER = {"PATH": "/bin:/usr/bin", "MY_KEY": KEY, "OWN": OWN, "MORE": "more-canary", "CANARY_API_KEY": CLEAR}


@pytest.fixture
def preview(tmp_path: Path) -> Preview:
    files = StateLayout(tmp_path)
    home = files.home("bot")
    home.mkdir(parents=True)
    for key, value in {
        "metering.upstream_base_url": "https://provider/v1",
        "metering.upstream_api_key": "secret:MY_KEY",
        "model": "secret:OWN",
        "acp.command": "secret:OWN",
        "agent.COPY": "secret:OWN",
        "agent.EXTRA": "Bearer ${secret:OWN}",
        "agent.BOTH": "${secret:MORE} at ${metering.base_url}",
        "agent.OTHER_API_KEY": CLEAR,
        "agent.PLAIN": "shown",
        "agent.OPEN": "shown",
        "agent.TOOL_API_KEY": "canary-in-a-file",
        "env.inherit": ["PATH", "CANARY_API_KEY", "OWN"],
    }.items():
        config_file.set(home / "config.toml", key, value)
    adapter = replace(kinds.command(["true"], interactive=False, observe=True), mapping=RULES)
    row = InstanceRow(id="i", name="bot", kind="command", adapter=adapter.to_json(), created_at_ns=1, port=1)
    run = RunRow(id="r", instance_id="i", token=TOKEN, started_at_ns=1)
    return previewing.preview(files, row, entries=_entries(files, row), environment=CALLER, run=run)


def _entries(files: StateLayout, row: InstanceRow) -> Callable[[], Sequence[Entry]]:
    return lambda: CurrentSettings(files, clock=SystemClock()).for_a_fresh_start(row)


def _env(document: dict[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry for entry in document["launch"]["env"]}


def test_no_secret_and_no_token_is_shown(preview: Preview) -> None:
    document = launch_view.document("bot", "stopped", preview, reveal=False)

    assert "canary" not in json.dumps(document).replace("CANARY_API_KEY", "")
    env = _env(document)
    assert {"name": "COPY", "value": "secret:****", "source": "setting", "key": "agent.COPY"} == env["COPY"]
    assert {"name": "OPEN", "value": "shown", "source": "setting", "key": "agent.OPEN"} == env["OPEN"]
    assert not {"PLAIN", "TOOL_API_KEY"} & set(env), "a rule alone delivers what it names"
    assert "http://127.0.0.1:1/****/v1" == env["URL"]["value"], "as `config get` shows it"
    assert "http://127.0.0.1:1/****/v1" in [word["text"] for word in document["launch"]["argv"]]
    assert "Bearer secret:****" == env["EXTRA"]["value"]
    both = document["launch"]["argv"][document_at(document, "--both") + 1]["text"]
    assert "secret:**** at http://127.0.0.1:1/****/v1" == both
    assert "secret:****" == env["OWN"]["value"]
    assert ["****"] * 2 == [env[name]["value"] for name in ("CANARY_API_KEY", "OTHER_API_KEY")]
    assert 'key = "secret:****"' in document["launch"]["files"][0]["content"]
    values = [
        {"at": ["api", "key"], "value": "secret:****"},
        {"at": ["tool"], "value": "secret:****"},
        {"at": ["plain"], "value": "shown"},
    ]
    assert [{"path": "theirs.json", "format": "json", "values": values}] == document["launch"]["merges"]
    assert "secret:****" == document["launch"]["argv"][document_at(document, "--secret") + 1]["text"]


def document_at(document: dict[str, Any], word: str) -> int:
    return [entry["text"] for entry in document["launch"]["argv"]].index(word)


def test_with_reveal_everything_is(preview: Preview) -> None:
    document = launch_view.document("bot", "stopped", preview, reveal=True)

    env = _env(document)
    assert (OWN, CLEAR, CLEAR, launching.NEXT_TOKEN) == tuple(
        env[name]["value"] for name in ("COPY", "CANARY_API_KEY", "OTHER_API_KEY", "A_KEY")
    )
    assert launching.NEXT_TOKEN in env["URL"]["value"]
    assert launching.NEXT_RUN == env["KT_RUN"]["value"], "the Run under way has another"
    assert TOKEN not in json.dumps(document)
    assert KEY not in json.dumps(document), "the agent never gets the provider's key, so nothing shows it"


def test_the_shape_is_pinned(preview: Preview) -> None:
    document = launch_view.document("bot", "running", preview, reveal=False)

    assert [
        "schema_version",
        "instance",
        "state",
        "starts",
        "refusals",
        "launch",
        "running",
        "notices",
    ] == list(document)
    assert ["executable", "cwd", "argv", "env", "folders", "files", "merges"] == list(document["launch"])
    assert {"text", "source", "key"} == set(document["launch"]["argv"][0])
    assert {"path", "mode", "content"} == set(document["launch"]["files"][0])
    assert {"run_id": "r", "pid": None, "differs": None, "why": launch_view.UNSEEN} == document["running"]
    assert sorted(env := [entry["name"] for entry in document["launch"]["env"]]) == env


def test_a_start_that_cannot_even_be_rendered_has_its_reason_and_no_launch() -> None:
    refused = Preview(plan=None, launch=None, executable=None, refusals=("because",))

    document = launch_view.document("bot", "failed", refused, reveal=True)

    assert (False, ["because"], None, []) == tuple(
        document[field] for field in ("starts", "refusals", "launch", "notices")
    )


def test_where_masked_values_cannot_be_rendered_none_is_shown(preview: Preview) -> None:
    document = launch_view.document("bot", "stopped", replace(preview, shown=None), reveal=False)

    launch = document["launch"]
    assert {"secret:****"} == {file["content"] for file in launch["files"]}
    assert {"secret:****"} == {one["value"] for file in launch["merges"] for one in file["values"]}
    assert "secret:****" == _env(document)["OPEN"]["value"]
    assert all(clear not in json.dumps(document) for clear in (KEY, OWN, TOKEN))


def test_differences_are_told_by_name(preview: Preview) -> None:
    compared = Compared(
        run_id="r",
        pid=7,
        differences=(Difference("command line", "", "changed"), Difference("variable", "A", "new")),
    )

    document = launch_view.document("bot", "running", replace(preview, running=compared), reveal=False)

    assert document["running"] == {
        "run_id": "r",
        "pid": 7,
        "differs": [
            {"what": "command line", "name": None, "how": "changed"},
            {"what": "variable", "name": "A", "how": "new"},
        ],
        "why": None,
    }


def test_a_secret_that_is_part_of_the_mask_is_masked_once(preview: Preview) -> None:
    document = launch_view.document("bot", "stopped", replace(preview, hidden=("e", "secret")), reveal=False)

    assert "shown" == _env(document)["OPEN"]["value"]
    assert "/bin:/us" in _env(document)["PATH"]["value"]
    assert "secret:secret" not in json.dumps(document)

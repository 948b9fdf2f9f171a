"""`POST /v1/agents/NAME/render` over a real engine: what is said is what is started, and saying it does nothing."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.house import House

from kt_manifest.contract import kinds
from kt_manifest.contract.declared_posture import Isolation, Posture, Updates
from kt_manifest.contract.snapshot import EnvTarget, FlagTarget, Rule

TELLS = (
    "import json, os, sys, time\nprint(json.dumps([sys.argv, dict(os.environ)]), flush=True)\ntime.sleep(600)"
)
POSTURE = Posture(
    substitution=("{env:VAR}",),
    isolation=Isolation(env={"ROOT": "own/root"}, undocumented=("ROOT",), validated="1"),
    updates=Updates(env={"NO_UPDATE": "1"}, args=("--no-update",)),
)


@pytest.fixture(scope="module")
def home_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(tmp_path_factory.mktemp("render") / "state").boot()
    yield house
    house.end()


def _register(house: House, name: str, **declared: Any) -> None:
    house.register(name, TELLS, **({"posture": POSTURE, "contract_version": "1.0.0"} | declared))


def _render(house: House, name: str, **variables: str) -> Any:
    body = {"env": {"PATH": os.environ["PATH"], **variables}}
    return house.ask("POST", f"/v1/agents/{name}/render", body)


def _everything(house: House, name: str) -> list[tuple[str, int]]:
    home = house.files.home(name)
    return sorted((str(path), path.lstat().st_mtime_ns) for path in (home, *home.rglob("*")))


def _heard(house: House, name: str) -> Any:
    said = house.until(
        lambda: [x["text"] for x in house.said(name) if x["text"].startswith("[[")], "it spoke"
    )
    return json.loads(said[0])


def test_a_rendering_starts_nothing_and_the_start_is_the_rendering(home_of_all: House) -> None:
    house = home_of_all
    _register(house, "bot")
    before = _everything(house, "bot")

    document = _render(house, "bot")

    assert (True, [], None) == (document["starts"], document["refusals"], document["running"])
    assert before == _everything(house, "bot")
    assert "registered" == house.entry("bot")["state"]

    house.start("bot")
    argv, env = _heard(house, "bot")
    shown = {entry["name"]: entry["value"] for entry in document["launch"]["env"]}
    assert {name: value for name, value in env.items() if name != "LC_CTYPE"} == shown | {
        "KT_RUN": env["KT_RUN"]
    }
    assert [word["text"] for word in document["launch"]["argv"][4:]] == argv[1:]
    assert 0o700 == Path(env["ROOT"]).stat().st_mode & 0o777

    same = _render(house, "bot")["running"]
    house.set("bot", "agent.LEVEL", "2")
    other = _render(house, "bot")["running"]
    assert (same["differs"], same["pid"]) == ([], house.entry("bot")["pid"])
    assert [{"what": "variable", "name": "LEVEL", "how": "new"}] == other["differs"]


def test_a_placeholder_without_a_value_spawns_nothing_and_changes_nothing(home_of_all: House) -> None:
    house = home_of_all
    _register(house, "unset")
    house.set("unset", "agent.CONTENT", json.dumps({"key": "\u007benv:MY_KEY}", "b": "sk-canary"}))
    before = (_everything(house, "unset"), house.entry("unset")["state"])

    refused = house.refusal("POST", "/v1/agents/unset/start", {"env": {"PATH": os.environ["PATH"]}})

    assert 1 == refused.exit_code
    assert "agent.CONTENT names MY_KEY, which is not set" in str(refused)
    assert "canary" not in str(refused)
    assert before == (_everything(house, "unset"), house.entry("unset")["state"])
    rendered = _render(house, "unset")
    assert (False, str(refused)) == (rendered["starts"], rendered["refusals"][0])
    assert rendered["launch"] is not None

    house.set("unset", "agent.MY_KEY", "k")
    house.start("unset")
    assert "k" == _heard(house, "unset")[1]["MY_KEY"]


def test_a_restart_that_would_leave_a_placeholder_empty_does_not_stop_the_agent(home_of_all: House) -> None:
    house = home_of_all
    _register(house, "goes-on")
    run = house.start("goes-on")["run_id"]
    house.set("goes-on", "agent.CONTENT", "{env:GONE}")

    body = {"env": {"PATH": os.environ["PATH"]}, "timeout_s": 5}
    refused = house.refusal("POST", "/v1/agents/goes-on/restart", body)

    assert "GONE" in str(refused)
    assert ("running", run) == (house.entry("goes-on")["state"], house.entry("goes-on")["run_id"])


def test_show_tells_the_posture_and_register_the_token_on_a_command_line(home_of_all: House) -> None:
    house = home_of_all
    adapter = replace(
        kinds.command((sys.executable, "-c", TELLS), interactive=False, observe=True),
        mapping=(Rule("metering.base_url", FlagTarget("--url")), Rule("model", EnvTarget("M"))),
        contract_version="1.0.0",
        posture=POSTURE,
    )

    answer = house.ask("POST", "/v1/agents", {"name": "told", "adapter": adapter.to_json()})

    assert any("metering.base_url carries a secret and is delivered as --url" in x for x in answer["notices"])
    posture = house.entry("told")["posture"]
    assert {"directories": {"ROOT": "own/root"}, "undocumented": ["ROOT"], "validated": "1"} == posture[
        "isolation"
    ]
    assert {"ROOT": "own/root"} == posture["isolation"]["directories"]
    assert "posture" not in house.ask("GET", "/v1/agents")["instances"][0]


def test_an_agent_that_is_not_there_is_not_rendered(home_of_all: House) -> None:
    assert 3 == home_of_all.refusal("POST", "/v1/agents/ghost/render", {}).exit_code


def test_a_link_in_the_place_of_a_root_fails_the_start(home_of_all: House, tmp_path: Path) -> None:
    house = home_of_all
    _register(house, "linked")
    (house.files.home("linked") / "own").symlink_to(tmp_path)

    refused = house.refusal("POST", "/v1/agents/linked/start", {"env": {"PATH": os.environ["PATH"]}})

    assert "a symbolic link" in str(refused)
    assert [] == list(tmp_path.iterdir())

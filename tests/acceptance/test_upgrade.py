"""`kt engine upgrade` again and again, between two versions, under traffic and sentinels: nobody notices."""

import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kt_cli.demo.provider_process import ProviderProcess
from kt_client.errors import KtError
from kt_client.link import Link
from kt_ledger.version import VERSION

REPOSITORY = Path(__file__).resolve().parents[2]
AGENTS = Path(__file__).parent / "agents"
UPGRADES = 20 if "KT_CHAOS" in os.environ else 2
LINES = 20_000 if "KT_CHAOS" in os.environ else 1_000
LATER = "99.1.0"


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which another version of kt runs: a copy of it that calls itself later."""
    there = tmp_path_factory.mktemp("later")
    for package in REPOSITORY.glob("*/kt_*"):
        shutil.copytree(package, there / package.name)  # with its bytecode, which is as old as its source
    (there / "kt_cli" / "demo" / "fixtures").symlink_to(REPOSITORY / "fixtures")
    (there / "kt_ledger" / "version.py").write_text(f'"""A later one."""\n\nVERSION = "{LATER}"\n')
    return {"PYTHONPATH": str(there), "PYTHONDONTWRITEBYTECODE": ""}


def rounds(fleet: Any) -> int:
    seen = fleet.state / "agents" / "asking" / "rounds"
    return int(seen.read_text() or 0) if seen.exists() else 0


@pytest.mark.long
@pytest.mark.chaos
def test_upgrades_lose_nothing_refuse_nothing_and_keep_every_run(
    fleet: Any, provider: ProviderProcess, eventually: Any, later: dict[str, str]
) -> None:
    counting = ["agent", "register", "counting", "--kind", "command", "--", sys.executable]
    fleet.run(*counting, str(AGENTS / "counting.py"), str(LINES), "0.3")
    fleet.run("agent", "start", "counting")
    fleet.observe(
        "asking", provider, str(AGENTS / "until_told.py"), "plain-json", "demo/story!", "stream-not-asked!"
    )
    runs = {name: fleet.instance(name)["run_id"] for name in ("counting", "asking")}
    versions = []

    for number in range(UPGRADES):
        seen = rounds(fleet)
        eventually(lambda seen=seen: rounds(fleet) > seen, what="traffic before the upgrade")
        env, version = (later, LATER) if number % 2 == 0 else ({}, VERSION)
        told = json.loads(fleet.run("engine", "upgrade", "--json", env=env).stdout)
        versions.append((told["replaced"]["version"], told["engine"]["version"]))
        eventually(
            lambda version=version: gateway_version(fleet) == version, what=f"a gateway of version {version}"
        )
    (fleet.state / "agents" / "asking" / "enough").write_text("")
    asked = fleet.wait_state("asking", "stopped", "failed")
    counted = eventually(lambda: all_counted(fleet), what="all lines")

    expected = [(VERSION, LATER), (LATER, VERSION)] * UPGRADES
    assert expected[:UPGRADES] == versions
    said = fleet.run("agent", "logs", "asking").stdout
    outcome = json.loads(next(line for line in said.splitlines() if '"failed"' in line).partition("] ")[2])
    assert [] == outcome["failed"]
    called = Counter(call.model for call in provider.calls())
    assert Counter(outcome["done"]) == called
    rows = fleet.exchanges("asking")
    assert called == Counter(row["model_asked"] for row in rows)
    assert {"exact"} == {row["completeness"] for row in rows}
    assert (LINES, sum(n % 97 for n in range(LINES))) == (
        counted["cumulative_output_tokens"],
        counted["cumulative_input_tokens"],
    )
    assert runs == {name: fleet.instance(name)["run_id"] for name in runs}
    assert 0 == asked["exit"]["code"]
    print(f"{UPGRADES} upgrades, {len(called)} calls, {LINES} lines: 0 lost, 0 doubled, 0 refused")


def gateway_version(fleet: Any) -> str | None:
    try:
        gateway = Link(fleet.state / "engine.sock").ask("GET", "/v1/engine")["gateway"]
    except KtError:
        return None
    return gateway["version"] if gateway else None


def all_counted(fleet: Any) -> Any:
    usage = fleet.usage("counting")
    return usage if usage["cumulative_output_tokens"] >= LINES else None


def test_an_older_kt_says_so_once_and_works(fleet: Any, later: dict[str, str]) -> None:
    fleet.run("engine", "start")

    newer = fleet.run("agent", "list", env=later)
    upgraded = fleet.run("engine", "upgrade", env=later)
    older = fleet.run("agent", "list")

    assert 1 == newer.stderr.count("`kt engine upgrade` replaces it")
    assert LATER in newer.stderr and VERSION in newer.stderr
    assert "Engine replaced" in upgraded.stdout and "replaces it" not in upgraded.stderr
    assert "use the newer kt" in older.stderr


@pytest.mark.chaos
@pytest.mark.long
def test_a_gateway_that_alone_knows_a_key_stays_until_nobody_needs_it(
    fleet: Any, provider: ProviderProcess, eventually: Any, later: dict[str, str]
) -> None:
    words = [sys.executable, str(AGENTS / "until_told.py"), "plain-json"]
    key = {"PROVIDER_KEY": "sk-known-to-one-gateway"}
    fleet.run("agent", "register", "asking", "--kind", "command", "--observe", "--", *words)
    fleet.run("agent", "config", "set", "asking", "metering.upstream_base_url", f"{provider.url}/v1")
    fleet.run("agent", "config", "set", "asking", "metering.upstream_api_key", "secret:PROVIDER_KEY", env=key)
    fleet.run("agent", "start", "asking", env=key)
    eventually(lambda: rounds(fleet) > 2, what="traffic before the upgrade")

    told = json.loads(fleet.run("engine", "upgrade", "--json", env=later).stdout)
    seen = rounds(fleet)
    eventually(lambda: rounds(fleet) > seen + 5, what="traffic after the upgrade")
    kept = gateway_version(fleet)
    advice = json.loads(fleet.run("doctor", "--json", env=later, check=None).stdout)["findings"]
    (fleet.state / "agents" / "asking" / "enough").write_text("")
    ended = fleet.wait_state("asking", "stopped", "failed")
    eventually(lambda: gateway_version(fleet) == LATER, what="the next gateway")

    assert (LATER, VERSION) == (told["engine"]["version"], kept)
    assert ("versions", "warn") in [(one["check"], one["level"]) for one in advice]
    assert 0 == ended["exit"]["code"]
    assert '"failed": []' in fleet.run("agent", "logs", "asking").stdout

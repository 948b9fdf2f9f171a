"""What every shipped adapter renders, as a golden; `pytest --regen` rewrites them."""

import json
from pathlib import Path
from typing import Any

import pytest

from kt_manifest.contract import manifest
from kt_manifest.contract.snapshot import ENGINE_OBSERVED, Adapter
from kt_manifest.launch import render
from kt_manifest.launch.native import document

ROOT = Path(__file__).parents[3]
GOLDENS = Path(__file__).parent / "goldens" / "shipped"
SHIPPED = sorted(path.parent for path in (ROOT / "adapters").rglob("adapter.toml"))
KEY = "sk-canary-0a1b"
SETTINGS: dict[str, str | list[str]] = {
    "model": 'vendor/"m"',
    "agent.PROMPT": "say 'hi'\n${model}".replace("${", "$${"),
    "metering.upstream_base_url": "https://api.example.com/v1",
    "metering.upstream_api_key": KEY,
}


def _rendered(adapter: Adapter) -> dict[str, Any]:
    observed = adapter.metering_source == ENGINE_OBSERVED
    run = render.RunFacts(
        home=Path("/home/agent"),
        base_environment={"PATH": "/bin"},
        metering_base_url="http://127.0.0.1:24001/tok/v1" if observed else None,
        metering_origin="http://127.0.0.1:24001/tok" if observed else None,
        placeholder_key="tok" if observed else None,
        instance_id="i",
        run_id="r",
        secret_keys=frozenset({"metering.upstream_api_key"}),
    )
    launch = render.render(adapter, SETTINGS, run)
    return {
        "argv": list(launch.argv),
        "env": launch.env,
        "files": {file.path: file.content for file in launch.files},
        "merges": {file.path: document.merge(file.format, None, file.edits) for file in launch.merges},
        "notices": list(launch.notices),
    }


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda path: path.name)
def test_a_shipped_adapter_renders_its_golden(folder: Path, pytestconfig: pytest.Config) -> None:
    golden = GOLDENS / f"{folder.name}.json"
    rendered = _rendered(manifest.load(folder))

    if pytestconfig.getoption("--regen"):
        GOLDENS.mkdir(exist_ok=True)
        golden.write_text(json.dumps(rendered, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    assert golden.exists(), f"no golden for {folder.name}: pytest --regen makes one"
    assert rendered == json.loads(golden.read_text(encoding="utf-8"))
    assert KEY not in golden.read_text(encoding="utf-8")


def test_no_golden_is_left_of_an_adapter_that_is_gone() -> None:
    assert {folder.name for folder in SHIPPED} == {path.stem for path in GOLDENS.glob("*.json")}


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda path: path.name)
def test_an_observed_one_is_led_to_its_listener_and_to_no_other_place(folder: Path) -> None:
    adapter = manifest.load(folder)
    told = json.dumps(_rendered(adapter))

    assert ("http://127.0.0.1:24001/tok" in told) is (adapter.metering_source == ENGINE_OBSERVED)
    assert "api.example.com" not in told

"""What is shipped as data and as words: adapters, and the page that an error message points to."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kt_manifest.contract import judgement, manifest
from kt_manifest.contract.snapshot import Adapter
from kt_manifest.launch import posture, render

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "adapters").rglob("adapter.toml"))


def test_adapters_are_shipped() -> None:
    assert len(SHIPPED) >= 2


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_a_shipped_adapter_is_accepted_and_named_after_its_folder(path: Path) -> None:
    adapter = manifest.load(path.parent)

    assert path.parent.name == adapter.kind
    assert adapter == Adapter.from_json(adapter.to_json())
    assert not adapter.goes_unseen()
    assert f"`{path.parent.name}`" in (ROOT / "adapters" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_two_instances_of_a_shipped_adapter_share_no_root_and_do_not_update_themselves(path: Path) -> None:
    adapter = manifest.load(path)
    caller = {"HOME": "/home/x", "XDG_DATA_HOME": "/home/x/shared"}
    neighbours = []
    for name in ("a", "b"):
        home = Path("/agents") / name
        run = render.RunFacts(home=home, base_environment=caller, metering_base_url="http://127.0.0.1:1/t/v1")
        neighbours.append(posture.Neighbour(name, home, render.preview(adapter, {"model": "m"}, run).env))

    found = posture.findings(adapter, None, instances=neighbours)

    assert adapter.posture.isolation is not None
    assert [] == [one for one in found if one.level == posture.ERROR]
    assert [] == [one for one in found if "leads out" in one.text]


def test_every_addition_of_the_page_can_be_registered(valid: str) -> None:
    page = (ROOT / "docs" / "adapter-contract.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?m)^\[kt\.(?:substitution|isolation|updates|version)\]\n(?:.+\n)+(?=```)", page)

    assert 4 == len(blocks)
    adapter = manifest.parse(valid + "".join(blocks), origin="page")
    assert adapter.posture.substitution
    assert adapter.posture.isolation and adapter.posture.updates and adapter.posture.version


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_an_adapter_of_somebody_elses_agent_says_what_was_tried(path: Path) -> None:
    if path.parent.name in ("openai-compatible", "self-reporting", "example-shim"):
        return  # to begin from: what they run is not there
    page = (path.parent / "README.md").read_text(encoding="utf-8")

    assert [] == [
        word for word in ("base URL", "updates", "isolation", "exit codes", "The tests") if word not in page
    ]


def test_the_page_that_the_error_message_points_to_is_there() -> None:
    page = (ROOT / "docs" / "adapter-contract.md").read_text(encoding="utf-8")

    assert "\n## Versioning\n" in page
    assert manifest.CONTRACT_VERSION in page


def test_the_page_tells_the_order_of_judgement() -> None:
    page = (ROOT / "docs" / "adapter-contract.md").read_text(encoding="utf-8")
    order = page[page.index("## What is judged first") : page.index("## Versioning")]
    words = [
        "unknown key",
        "unknown word",
        "`contract_version`",
        "[adapter]",
        "`kind`",
        "`name`",
        "[lifecycle]",
        "`start`",
    ]
    words += [
        "other operations",
        "[capabilities]",
        "[metering]",
        "[interaction]",
        "[config.<key>]",
        "[kt]",
        "[kt.config]",
        "major",
    ]

    places = [order.index(word) for word in words]

    assert places == sorted(places)
    assert len(words) == len(judgement.JUDGEMENT) + 1


def test_reading_layers_and_snapshots_loads_neither_pydantic_nor_tomlkit_nor_semver() -> None:
    """`kt agent list` has 150 ms of CPU for the whole command."""
    code = (
        "import sys\n"
        "from kt_manifest.configuration import config_file, layers, secrets, settings\n"
        "from kt_manifest.contract import capability, kinds, names, snapshot\n"
        "from kt_manifest.launch import render\n"
        "print([name for name in ('pydantic', 'tomlkit', 'semver', 'ruamel.yaml') if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "[]"


def test_a_system_without_fcntl_or_users_validates_and_renders() -> None:
    """Windows, as far as a Unix machine can show it."""
    code = (
        "import os, sys\n"
        "sys.modules['fcntl'] = None\n"
        "for name in 'O_NONBLOCK O_NOCTTY O_NOFOLLOW O_DIRECTORY O_CLOEXEC geteuid'.split(): delattr(os, name)\n"
        "from pathlib import Path\n"
        "from kt_manifest.configuration import secrets\n"
        "from kt_manifest.contract import manifest\n"
        "from kt_manifest.launch import render\n"
        "adapter = manifest.load(Path(sys.argv[1]))\n"
        "run = render.RunFacts(home=Path('/x'), base_environment={'A': 'b'})\n"
        "print(render.render(adapter, {'model': 'm'}, run).env['OPENAI_MODEL'])\n"
    )
    folder = ROOT / "adapters" / "openai-compatible"

    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, timeout=60
    )

    assert (done.stdout.strip(), done.stderr) == ("m", "")

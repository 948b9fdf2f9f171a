"""The pages for authors of adapters: every TOML block is judged, every block of commands is run."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from kt_manifest.contract import json_schema, manifest, manifest_document

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / "docs" / f"{name}.md" for name in ("adapter-contract", "manifest", "writing-adapters")),
    *sorted((ROOT / "adapters").glob("**/README.md")),
]
MARK = "### block"

# What a part of a manifest needs around it, a table each.
AROUND = {
    ("contract_version",): 'contract_version = "1.0.0"\n',
    ("adapter",): '[adapter]\nkind = "a"\n',
    ("lifecycle", "start"): '[lifecycle.start]\nexec = "a"\n',
    ("capabilities",): '[capabilities.pause]\nlinux = "guaranteed"\n',
    ("metering",): '[metering]\nsource = "self-reported"\n',
}


def blocks(page: Path, info: str) -> list[str]:
    return re.findall(rf"^```{info}\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def whole(part: str) -> str:
    """Return a manifest in which this part stands."""
    there = tomllib.loads(part)

    def has(path: tuple[str, ...]) -> bool:
        at: Any = there
        for name in path:
            at = at.get(name) if isinstance(at, dict) else None
        return at is not None

    version, *rest = ["" if has(path) else text for path, text in AROUND.items()]
    # A bare key of the part belongs to the top, so the part comes before every other table.
    return "".join([version, part, *rest])


TOML = [(page, block) for page in PAGES for block in blocks(page, "toml")]
REFUSED = [(page, block) for page in PAGES for block in blocks(page, "toml refused")]


def named(value: object) -> str:
    return value.stem if isinstance(value, Path) else str(value).strip().splitlines()[0][:40]


def test_there_are_examples_of_both_sorts_and_no_others() -> None:
    assert len(TOML) >= 14 and len(REFUSED) >= 4
    fences = {
        info for page in PAGES for info in re.findall(r"^```(.+)$", page.read_text("utf-8"), re.MULTILINE)
    }
    assert {"toml", "toml refused", "sh", "text"} == fences


@pytest.mark.parametrize(("page", "block"), TOML, ids=named)
def test_an_example_is_accepted(page: Path, block: str) -> None:
    assert manifest.parse(whole(block), origin=page.name)


@pytest.mark.parametrize(("page", "block"), REFUSED, ids=named)
def test_an_example_of_a_fault_is_refused_for_it(page: Path, block: str) -> None:
    first_table = re.search(r"^\[.*\]$", block, re.MULTILINE)
    assert first_table is not None

    found = manifest.faults(whole(block), origin=page.name)

    last = block[block.rindex("\n[") + 1 if "\n[" in block else 0 :].splitlines()[0]
    assert last.strip("[]").startswith(found[0].section.strip("[]"))


def test_the_complete_example_of_the_reference_has_a_table_of_each_sort() -> None:
    example = tomllib.loads(blocks(ROOT / "docs" / "manifest.md", "toml")[0])

    assert set(json_schema.document()["properties"]) == set(example)
    targets = {target for rule in example["config"].values() for target in rule}
    assert {"env", "flag", "file"} == targets


def test_the_table_of_all_fields_is_that_of_the_schema() -> None:
    """Else: `python -c "from pathlib import Path; from kt_manifest.contract import manifest_document as m;
    m.write(Path('docs/manifest.md'))"`."""
    page = (ROOT / "docs" / "manifest.md").read_text("utf-8")

    assert page == manifest_document.replaced(page)


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in PAGES:
        for file, anchor in re.findall(r"\]\(([a-z-]*\.?m?d?)#([a-z-]+)\)", page.read_text("utf-8")):
            target = (page.parent / file if file else page).read_text("utf-8")
            titles = [title.lower() for title in re.findall(r"^#+ (.+)$", target, re.MULTILINE)]
            anchors = {re.sub(r"[^a-z0-9 _-]", "", title).replace(" ", "-") for title in titles}
            assert anchor in anchors, f"{page.name}: {file}#{anchor}"


def test_the_refusal_that_points_to_the_page_stands_in_it_to_the_letter() -> None:
    page = (ROOT / "docs" / "adapter-contract.md").read_text("utf-8")

    assert [f"{manifest.ContractIncompatible('2.1.0')}\n"] == blocks(
        ROOT / "docs" / "adapter-contract.md", "text"
    )
    assert "\n## Versioning\n" in page


def versions() -> list[tuple[str, str]]:
    page = (ROOT / "docs" / "adapter-contract.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.+`) \| (accepted|refused|no version).* \|$", page, re.MULTILINE)
    return [(version, outcome) for listed, outcome in rows for version in re.findall("`([^`]+)`", listed)]


@pytest.mark.parametrize(("version", "outcome"), versions())
def test_the_table_of_versions_is_true(version: str, outcome: str) -> None:
    found = manifest.faults(whole(f'contract_version = "{version}"\n'), origin="x")

    kinds = {"accepted": [], "refused": ["incompatible_contract"], "no version": ["invalid_field"]}
    assert kinds[outcome] == [fault.kind for fault in found]


def run(kt: Any, page: Path, tmp_path: Path) -> list[str]:
    """Run the commands of a page in one shell, with `kt` and Python on PATH; return what each block printed."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "kt").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kt_cli.main "$@"\n')
    (tools / "kt").chmod(0o755)
    (tools / "python3").symlink_to(sys.executable)
    (tmp_path / "work").mkdir()
    script = "set -eu\n" + "".join(f"echo '{MARK}'\n{block}" for block in blocks(page, "sh"))
    done = subprocess.run(
        ["sh", "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path / "work",
        env=kt.environment(PATH=f"{tools}{os.pathsep}{os.environ['PATH']}"),
        timeout=280,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout.split(MARK)[1:]


@pytest.mark.timeout(300)  # two dozen commands
def test_the_tutorial_works_from_the_first_to_the_last_command(shared_kt: Any, tmp_path: Path) -> None:
    said = run(shared_kt, ROOT / "docs" / "writing-adapters.md", tmp_path)

    _, first, second, talked, removed, shim, observed, third, _, judged, both = said
    assert "is valid: kind turner" in first
    assert "interaction  guaranteed" in second
    assert "turner fails nothing in 2 of 14 sections" in second
    assert "lifecycle               pass" in second and "metering_self_reported  pass" in second
    assert "ready, with the model tiny" in talked and "three two one" in talked
    assert "Removed" in removed or "removed" in removed
    assert "≥" in shim.strip().splitlines()[-1] or "≥" in shim
    assert "variable OPENAI_BASE_URL" in observed
    assert "Registered third (kind observed)" in third
    assert "is valid: kind scribbler" in judged
    for name in ("left", "right"):
        assert f"Started {name}." in both
        merged = {
            "llm": {"theme": "dark", "model": f"tiny-{name}", "max_tokens": 100},
            "updates": {"check": False},
        }
        assert merged in [json.loads(line) for line in both.splitlines() if line.startswith("{")]


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["turner", "scribbler"])
def test_the_adapters_of_the_tutorial_pass_the_whole_kit(kt: Any, tmp_path: Path, name: str) -> None:
    made = [
        block for block in blocks(ROOT / "docs" / "writing-adapters.md", "sh") if f"> bin/{name}" in block
    ]
    told = re.search(
        rf"^cat >>? {name}/adapter.toml <<'END'\n.*?^END$",
        (ROOT / "docs" / "writing-adapters.md").read_text("utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    assert told is not None
    new = f"kt adapter new {name}\n" if f"kt adapter new {name}" not in made[0] else ""
    page = tmp_path / "page.md"
    path = 'mkdir -p bin\nexport PATH="$PWD/bin:$PATH"\n'
    page.write_text(f"```sh\n{path}{made[0]}{new}{told.group()}\nkt adapter test {name}\n```\n")

    [said] = run(kt, page, tmp_path)

    assert f"{name} holds what it declares" in said


def test_the_tutorial_leads_to_the_other_pages() -> None:
    tutorial = (ROOT / "docs" / "writing-adapters.md").read_text("utf-8")
    readme = (ROOT / "README.md").read_text("utf-8")

    for name in ("conformance", "manifest", "adapter-contract"):
        assert f"({name}.md" in tutorial
        assert f"(docs/{name}.md)" in readme


@pytest.mark.parametrize("page", [ROOT / "docs" / "manifest.md", *PAGES[3:]], ids=str)
def test_the_commands_of_the_other_pages_work(shared_kt: Any, tmp_path: Path, page: Path) -> None:
    said = run(shared_kt, page, tmp_path)

    assert len(said) == len(blocks(page, "sh"))

"""`kt adapter test`: what it says, and how it ends."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conformance.conftest import Declared, fake

from kt_cli.commands import adapter_test
from kt_conformance import catalogue
from kt_conformance.report import Report, Result


def kt(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kt_cli.main", "adapter", "test", *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=100, env=os.environ | env, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "adapter.toml").write_text(Declared(fake()).text())
    return str(tmp_path)


def test_people_get_a_table_and_see_it_grow(folder: str) -> None:
    done = kt(folder, "--section", "lifecycle", "--section", "memory", COLUMNS="100")

    assert 0 == done.returncode, done.stderr
    assert "lifecycle ..." in done.stderr
    assert "lifecycle: pass" in done.stderr
    rows = [line.split(None, 3) for line in done.stdout.splitlines()]
    assert ["Section", "Result", "Driven", "Seconds"] == rows[0]
    assert ["lifecycle", "pass", "subject"] == rows[2][:3]
    assert "memory     not applicable  —" in done.stdout
    assert "\nmemory: the adapter does not map memory.dir\n" in done.stdout
    last = "under-test fails nothing in 2 of 14 sections (contract 1.0.0); the others were not run."
    assert last == done.stdout.splitlines()[-1]
    assert "\x1b" not in done.stdout + done.stderr


def test_programs_get_one_document(tmp_path: Path) -> None:
    (tmp_path / "adapter.toml").write_text("")

    done = kt(str(tmp_path), "--section", "memory", "--json")

    assert 1 == done.returncode
    assert "" == done.stderr
    document = json.loads(done.stdout)
    assert ("fail", False) == (document["sections"][0]["result"]["status"], document["complete"])


def test_a_fail_is_exit_code_1_and_a_stand_in_is_named(folder: str) -> None:
    done = kt(folder, "--section", "lifecycle", "--exec", "/no/such/agent", "--arg", "x")

    assert 1 == done.returncode
    assert "lifecycle  FAIL" in done.stdout
    assert "under-test fails 1 of 1 sections (contract 1.0.0). Only 1 of 14 were run." in done.stdout
    assert "a stand-in (/no/such/agent x), not the adapter's own program" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--section", "pauze"], 2, "did you mean pause?"),
        (["--nothing"], 2, "No such option"),
    ],
)
def test_wrong_use_is_exit_code_2(folder: str, words: list[str], code: int, says: str) -> None:
    done = kt(folder, *words)

    assert code == done.returncode
    assert says in done.stderr


def test_no_manifest_is_exit_code_3(tmp_path: Path) -> None:
    done = kt(str(tmp_path))

    assert 3 == done.returncode
    assert "manifest not found" in done.stderr


def test_what_held_everything_holds_what_it_declares() -> None:
    results = tuple(Result(section=name, status="pass") for name in catalogue.SECTIONS)
    whole = Report(contract_version="1.0.0", adapter_kind="x", sections=results, of=len(results))

    assert whole.complete
    assert "x holds what it declares (contract 1.0.0)." == adapter_test._verdict(whole)
    assert "14 of 14" not in adapter_test._verdict(replace(whole, sections=results[:1]))


def test_a_reason_is_told_once_with_all_sections_that_it_holds_for(folder: str) -> None:
    done = kt(folder, "--section", "lifecycle", "--section", "pause", "--exec", "/no/such/agent")

    assert 1 == done.stdout.count("the subject does not start")
    assert "\nlifecycle, pause: the subject does not start" in done.stdout

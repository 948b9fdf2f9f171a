"""The pytest plugin, run as its users run it: in a pytest of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.conformance.conftest import FAKE, Declared, fake


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", "-v"]
    return subprocess.run(
        [*command, *words], cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )


def test_each_section_is_a_test(tmp_path: Path) -> None:
    (tmp_path / "adapter.toml").write_text(Declared(("my-agent",)).text())
    (tmp_path / "test_mine.py").write_text("def test_mine():\n    pass\n")
    sections = [f"--kt-section={name}" for name in ("lifecycle", "memory", "metering_self_reported")]
    stand_in = ["--kt-exec", sys.executable, "--kt-arg=-u", f"--kt-arg={FAKE}"]

    done = run(tmp_path, "--kt-adapter", ".", *sections, *stand_in)

    said = done.stdout + done.stderr
    assert 1 == done.returncode, said
    assert "lifecycle PASSED" in said
    assert "memory SKIPPED" in said
    assert "metering_self_reported FAILED" in said
    assert "got no usage line within 10 s" in said
    assert "test_mine PASSED" in said


def test_the_kit_can_be_called_from_a_test(tmp_path: Path) -> None:
    (tmp_path / "adapter.toml").write_text(Declared(fake()).text().replace("1.0.0", "2.0.0"))
    (tmp_path / "test_mine.py").write_text(
        "from pathlib import Path\n"
        "def test_it(kt_conformance):\n"
        "    report = kt_conformance(Path('.'), sections=['memory'])\n"
        "    assert 'incompatible adapter contract' in report.section('memory').reason\n"
    )

    done = run(tmp_path)

    assert 0 == done.returncode, done.stdout
    assert "1 passed" in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--kt-adapter", "nowhere"], "manifest not found"),
        (["--kt-adapter", ".", "--kt-section", "pauze"], "did you mean pause?"),
    ],
)
def test_what_cannot_be_tested_is_wrong_use(tmp_path: Path, words: list[str], says: str) -> None:
    (tmp_path / "adapter.toml").write_text(Declared(fake()).text())

    done = run(tmp_path, *words)

    assert 4 == done.returncode
    assert says in done.stderr


def test_without_the_option_nothing_is_added(tmp_path: Path) -> None:
    assert 5 == run(tmp_path).returncode  # pytest: nothing was collected

"""The container files say what they should, as far as a machine without a container engine can tell."""

import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.mark.skipif(not shutil.which("docker-compose"), reason="docker-compose is not installed")
def test_compose_accepts_the_file() -> None:
    done = subprocess.run(
        ["docker-compose", "-f", REPOSITORY / "compose.yaml", "config"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (done.returncode, done.stderr)
    assert "network_mode: service:supervisor" in done.stdout
    assert "pid: service:supervisor" in done.stdout

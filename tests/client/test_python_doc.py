"""The examples of docs/python.md, run one after another as one program, as a reader would."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from kt_client.verbs import Verbs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_the_examples_work_as_they_stand(kt: Any) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)

    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        capture_output=True,
        text=True,
        env=kt.environment(),
        timeout=100,
        check=False,
    )

    assert 0 == done.returncode, done.stderr
    lines = done.stdout.splitlines()
    assert "running" == lines[0]
    assert "running 0 all" in lines and "gpt-4o-mini" in lines
    assert any(line.startswith("4 ") for line in lines) and "3" in lines
    assert "running 1" in lines
    assert "False" == lines[-1]


def test_every_verb_is_named() -> None:
    page = PAGE.read_text()

    verbs = [name for name in vars(Verbs) if not name.startswith("_")]

    assert verbs
    assert [] == [verb for verb in verbs if f"`{verb}" not in page]

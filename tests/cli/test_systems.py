"""What works where: a system without what Unix alone has, as Windows is, made by taking it away before we are imported.

No Windows is at hand: this says that nothing of ours needs the modules that it lacks, and not that it was run there.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WITHOUT_UNIX = """
import sys, os, socket, click
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in {"fcntl", "pwd", "grp", "resource", "termios", "tty", "_posixsubprocess", "syslog"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
for name in ("fcntl", "pwd", "grp", "resource", "termios", "tty"):
    sys.modules.pop(name, None)
del socket.AF_UNIX
for name in ("fork", "geteuid", "getuid", "umask", "mkfifo", "statvfs", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK",
             "O_CLOEXEC", "fchmod", "fchown", "chown", "getpgrp", "setsid"):
    if hasattr(os, name): delattr(os, name)
from kt_cli import main
sys.exit(main.run(sys.argv[1:]))
"""

FAULTY = """
contract_version = "2.0.0"

[adapter]
kind = "x"

[lifecycle.start]
exec = ""

[metering]
source = "nobody"
"""


def elsewhere(kt: Any, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_UNIX, *words],
        capture_output=True,
        text=True,
        env=kt.environment(),
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "words",
    [
        ("agent", "start", "bot"),
        ("agent", "register", "bot", "--kind", "mock"),
        ("agent", "list"),
        ("agent", "logs", "bot"),
        ("engine", "start"),
        ("engine", "run"),
        ("engine", "upgrade"),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_without_unix_an_agent_is_refused_in_a_sentence(kt: Any, words: tuple[str, ...]) -> None:
    done = elsewhere(kt, *words)

    assert (5, "") == (done.returncode, done.stdout), done.stderr
    assert "agents cannot be run on this system" in done.stderr
    assert not kt.state.exists()


def test_without_unix_an_adapter_is_validated_all_the_same(kt: Any, tmp_path: Path) -> None:
    (tmp_path / "adapter.toml").write_text(FAULTY)
    shipped = Path(__file__).resolve().parents[2] / "adapters"

    good = [elsewhere(kt, "adapter", "validate", str(path.parent)) for path in shipped.glob("*/adapter.toml")]
    faulty = elsewhere(kt, "adapter", "validate", str(tmp_path), "--json")

    assert {0} == {done.returncode for done in good}
    assert 1 == faulty.returncode
    assert len(json.loads(faulty.stdout)["faults"]) > 1


def test_without_unix_help_and_version_are_there(kt: Any) -> None:
    assert [0, 0] == [elsewhere(kt, *words).returncode for words in (("--help",), ("--version",))]

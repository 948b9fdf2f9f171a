"""CPU of the whole `kt agent list` command with a running engine: `python -m bench.command`. Target: 150 ms."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TARGET_MS = 150
ROUNDS = 20
INSTANCES = 5


def main() -> None:
    """Measure it and print one line."""
    with tempfile.TemporaryDirectory(prefix="kt-bench-") as folder:
        state = Path(folder) / "state"
        for number in range(INSTANCES):
            kt(state, "agent", "register", f"agent-{number}", "--kind", "command", "--", "/bin/true")
        try:
            times = [kt(state, "agent", "list") for _ in range(ROUNDS)]
        finally:
            kt(state, "engine", "stop", "--all")
    figures = {"cpu_ms": round(statistics.median(times)), "least_ms": round(min(times)), "rounds": ROUNDS}
    verdict = "met" if figures["cpu_ms"] <= TARGET_MS else "missed"
    print(
        f"list: {figures['cpu_ms']} ms CPU (median of {ROUNDS}, least {figures['least_ms']}); "
        f"target {TARGET_MS}: {verdict}"
    )
    print(json.dumps(figures))


def kt(state: Path, *words: str) -> float:
    """Run a command; return its CPU, user and system, in milliseconds."""
    environment = {**os.environ, "KTESIO_STATE_DIR": str(state)}
    command = [str(Path(sys.executable).with_name("kt")), *words]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}")
    return (used.ru_utime + used.ru_stime) * 1000


if __name__ == "__main__":
    main()

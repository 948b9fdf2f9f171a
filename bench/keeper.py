"""Memory of ten keepers side by side: `python -m bench.keeper`. Target: 6 MB PSS each.

PSS counts a shared page in shares (proc_pid_smaps_rollup(5)); private is what one more Run adds.
"""

import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from kt_ledger import unix_socket
from kt_supervisor import keeper as package
from kt_supervisor.keeper.spec import Spec

TARGET_MB = 6.0
KEEPERS = 10
MAIN = Path(package.__file__).with_name("__main__.py")


def main() -> None:
    """Start them, measure them, end them, print one line."""
    with tempfile.TemporaryDirectory(prefix="kt-bench-") as folder:
        kept = [start(Path(folder), number) for number in range(KEEPERS)]
        links = [connect(spec) for spec, _ in kept]
        rollups = [Path(f"/proc/{process.pid}/smaps_rollup").read_text() for _, process in kept]
        for link in links:
            link.sendall(b'{"op": "stop", "timeout_s": 0}\n{"op": "release"}\n')
        for _, process in kept:
            process.wait(20)
    figures = {
        "pss_mb": round(statistics.mean(kilobytes(text, "Pss") for text in rollups) / 1024, 2),
        "private_mb": round(statistics.mean(kilobytes(text, "Private_Dirty") for text in rollups) / 1024, 2),
    }
    verdict = "met" if figures["pss_mb"] <= TARGET_MB else "missed"
    print(
        f"keeper: {figures['pss_mb']} MB PSS each of {KEEPERS} (private {figures['private_mb']}); "
        f"target {TARGET_MB}: {verdict}"
    )
    print(json.dumps(figures))


def start(folder: Path, number: int) -> "tuple[Spec, subprocess.Popen[bytes]]":
    """Start one keeper of an agent that does nothing."""
    spec = Spec(
        run_id=f"bench-{number}",
        instance_id="bench",
        name="bench",
        state_dir=str(folder),
        argv=("/bin/sleep", "600"),
        env={"PATH": os.defpath},
        cwd="/",
    )
    process = subprocess.Popen([sys.executable, "-I", "-S", str(MAIN)], stdin=subprocess.PIPE)
    assert process.stdin
    process.stdin.write(spec.encode())
    process.stdin.close()
    return spec, process


def connect(spec: Spec) -> socket.socket:
    """Return an engine's connection to a keeper whose agent runs."""
    while True:
        link = socket.socket(socket.AF_UNIX)
        try:
            unix_socket.connect(link, spec.files.socket)
            break
        except OSError:
            link.close()
    link.sendall(b'{"op": "hello", "protocol": 1}\n')
    while b"running" not in link.recv(4096):
        link.sendall(b'{"op": "status"}\n')
    return link


def kilobytes(rollup: str, name: str) -> int:
    """Return one figure of a smaps_rollup."""
    found = re.search(rf"^{name}:\s+(\d+) kB", rollup, re.MULTILINE)
    assert found
    return int(found[1])


if __name__ == "__main__":
    main()

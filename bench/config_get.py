"""Time of `config get` for an agent with 200 settings, asked of a running engine: `python -m bench.config_get`.

Target: p99 <= 5 ms, on a quiet machine. What is measured is a request over a connection that stays, from its first byte
to the last of the answer; the CPU is the engine's own for all of it.
"""

import json
import os
import socket
import statistics
import tempfile
import time
from pathlib import Path
from typing import BinaryIO

from kt_client import Client

TARGET_MS = 5.0
KEYS = 200
ROUNDS = 2000
SETTLED_S = 0.2
ASK = b"GET /v1/agents/bot/config HTTP/1.1\r\nhost: engine\r\n\r\n"


def main() -> None:
    """Measure it and print one line."""
    with tempfile.TemporaryDirectory(prefix="kt-bench-") as folder:
        client = Client(Path(folder) / "state")
        client.register("bot", kind="command", command=["/bin/true"])
        lines = [f'"agent.KEY_{number}" = "value {number}"' for number in range(KEYS)]
        (client.files.home("bot") / "config.toml").write_text("\n".join(lines) + "\n")
        client.files.fleet_config.write_text('restart.policy = "never"\n')
        try:
            time.sleep(SETTLED_S)
            figures = {"keys": KEYS, "rounds": ROUNDS, **_measure(client)}
        finally:
            client.engine_stop(everything=True)
    verdict = "met" if figures["p99_ms"] <= TARGET_MS else "missed"
    print(
        f"config get: p50 {figures['p50_ms']} ms, p99 {figures['p99_ms']} ms, {figures['cpu_ms']} ms CPU; "
        f"target p99 {TARGET_MS:g}: {verdict}"
    )
    print(json.dumps(figures))


def _measure(client: Client) -> dict[str, float]:
    pid, times_ms = int(client.engine_status()["pid"]), []
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(client.files.engine_socket))
        answers = connection.makefile("rb")
        cpu_ms = _cpu_ms(pid)
        for _ in range(ROUNDS):
            began = time.perf_counter()
            connection.sendall(ASK)
            answer = _read(answers)
            times_ms.append((time.perf_counter() - began) * 1000)
            assert len(json.loads(answer)["entries"]) >= KEYS, answer
        cpu_ms = _cpu_ms(pid) - cpu_ms
    times_ms.sort()
    return {
        "p50_ms": round(statistics.median(times_ms), 2),
        "p99_ms": round(times_ms[int(len(times_ms) * 0.99)], 2),
        "cpu_ms": round(cpu_ms / ROUNDS, 2),
    }


def _read(answers: BinaryIO) -> bytes:
    length = 0
    while (line := answers.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return answers.read(length)


def _cpu_ms(pid: int) -> float:
    """Return what a process has used so far: proc_pid_stat(5), utime and stime."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()

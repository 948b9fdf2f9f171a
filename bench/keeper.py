"""What a keeper costs: memory of ten that run side by side, time to start, output per second.

`python bench/keeper.py`, on Linux (memory is read from /proc/PID/smaps_rollup). PSS shares what is shared; private is
what one more Run adds.
"""

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
MAIN = REPOSITORY / "supervisor" / "kt_supervisor" / "keeper" / "__main__.py"
sys.path[:0] = [str(REPOSITORY / "supervisor"), str(REPOSITORY / "ledger")]

from kt_supervisor.keeper import specification  # noqa: E402 - the path comes first

DEADLINE_S = 60.0


def launch(state: Path, run_id: str, argv: list[str]) -> subprocess.Popen[bytes]:
    """Return a new keeper; its files are in `state`."""
    (state / "runs" / run_id).mkdir(parents=True)
    data = specification.build(
        run_id=run_id,
        instance_id=run_id,
        name=run_id,
        state_dir=str(state),
        argv=argv,
        env={"PATH": os.environ["PATH"]},
        cwd="/",
        engine_command=["/bin/false"],
        engine_env={},
    )
    process = subprocess.Popen([sys.executable, "-I", "-S", str(MAIN)], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.close()
    return process


@contextmanager
def engine(state: Path, run_id: str) -> Iterator[socket.socket]:
    """Yield an engine's connection to that keeper, once it listens."""
    path = state / "runs" / run_id / "keeper.sock"
    end_s = time.monotonic() + DEADLINE_S
    while not path.exists() and time.monotonic() < end_s:
        os.sched_yield()
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(DEADLINE_S)
        stream.connect(str(path))
        stream.sendall(b'{"op": "hello", "protocol": 1}\n')
        yield stream


def exited(stream: socket.socket) -> dict[str, object]:
    """Return the exited event."""
    for line in stream.makefile():
        event = json.loads(line)
        if event.get("event") == "exited":
            return dict(event)
    raise ConnectionError("the keeper left without a word")


def memory_kb(pid: int) -> tuple[int, int]:
    """Return (PSS, private) of a process."""
    fields = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    )
    values = {name: int(value.split()[0]) for name, value in fields.items()}
    return values["Pss"], values["Private_Clean"] + values["Private_Dirty"]


def measure_memory(state: Path, count: int) -> None:
    """Print the memory of `count` keepers, each with a quiet agent and a connected engine."""
    keepers = [launch(state, f"memory-{number}", ["/bin/sleep", "600"]) for number in range(count)]
    streams = [engine(state, f"memory-{number}") for number in range(count)]
    open_streams = [stream.__enter__() for stream in streams]
    for stream in open_streams:
        stream.recv(4096)
    figures = [memory_kb(keeper.pid) for keeper in keepers]
    pss_mb, private_mb = (sum(column) / count / 1024 for column in zip(*figures, strict=True))
    print(f"memory   {pss_mb:.2f} MB PSS, {private_mb:.2f} MB private, average of {count} keepers")
    for stream in open_streams:
        stream.sendall(b'{"op": "stop", "timeout_s": 0}\n')
        exited(stream)
    for stream in streams:
        stream.__exit__(None, None, None)
    for keeper in keepers:
        keeper.wait(DEADLINE_S)


def measure_start(state: Path, rounds: int) -> None:
    """Print the median time from spawning the keeper to the durable record of a `true` that ended."""
    times_s = []
    for number in range(rounds):
        begin_s = time.perf_counter()
        keeper = launch(state, f"start-{number}", ["/bin/true"])
        with engine(state, f"start-{number}") as stream:
            exited(stream)
            times_s.append(time.perf_counter() - begin_s)
        keeper.wait(DEADLINE_S)
    print(
        f"start    {sorted(times_s)[rounds // 2] * 1000:.0f} ms median from spawn to exit record, {rounds} rounds"
    )


def measure_output(state: Path, megabytes: int) -> None:
    """Print how fast output is copied, and what it costs the keeper."""
    begin_s = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    keeper = launch(state, "output", ["/usr/bin/head", "-c", f"{megabytes}M", "/dev/zero"])
    with engine(state, "output") as stream:
        exited(stream)
    took_s = time.perf_counter() - begin_s
    keeper.wait(DEADLINE_S)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"output   {megabytes / took_s:.0f} MB/s; {cpu_s / megabytes * 1000:.1f} ms CPU a MB, the agent's included"
    )


def main() -> None:
    """Print all of it."""
    with tempfile.TemporaryDirectory(prefix="kt-bench-") as folder:
        measure_memory(Path(folder), 10)
        measure_start(Path(folder), 9)
        measure_output(Path(folder), 256)


if __name__ == "__main__":
    main()

"""CPU of the gateway process for a 1 KB call and for a streamed chunk, beside nginx as a plain proxy, in one run.

`python -m bench.lane [--seconds S] [--json FILE]`. Needs wrk and nginx; Linux. Both proxies stand in front of the same
nginx, which answers from memory; each figure is user + system time of the process under test (/proc,
all threads) divided by what it carried. Metering, token check, journal and sync are on, as they always are.
"""

import argparse
import http.client
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.lane_equipment import (
    STREAM_CHUNKS,
    TOKEN,
    GatewayProcess,
    Nginx,
    StreamProvider,
    free_port,
    proxy_config,
    upstream_config,
)

TARGET_CALL_MS = 0.5
ROUNDS = 6
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Figure:
    """One measured row; `cpu_us` is microseconds of CPU for one unit."""

    proxy: str
    what: str
    units: int
    cpu_us: float
    units_per_s: float


def main() -> None:
    """Run everything and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--json", type=Path, default=Path("bench/results/lane.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kt-bench-") as folder:
        figures = measure(Path(folder), seconds=options.seconds)
    print(table(figures))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps([asdict(figure) for figure in figures], indent=2) + "\n")


def measure(folder: Path, *, seconds: float) -> list[Figure]:
    """Return the figures of all proxies."""
    body = completion_of_bytes(1024)
    streams = StreamProvider()
    upstream_port, proxy_port, stream_proxy_port = free_port(), free_port(), free_port()
    upstream = Nginx(folder / "upstream", upstream_config(upstream_port, body))
    proxy = Nginx(folder / "proxy", proxy_config(proxy_port, upstream_port, stream_proxy_port, streams.port))
    gateway = GatewayProcess(folder / "state")
    try:
        ours = gateway.put("calls", f"http://127.0.0.1:{upstream_port}/v1")
        ours_stream = gateway.put("streams", f"http://127.0.0.1:{streams.port}/v1")
        path = "/v1/chat/completions"
        return [
            calls("nginx", proxy.worker_pid, f"http://127.0.0.1:{proxy_port}{path}", folder, seconds),
            calls("kt gateway", gateway.pid, f"http://127.0.0.1:{ours}/{TOKEN}{path}", folder, seconds),
            chunks("nginx", proxy.worker_pid, stream_proxy_port, path),
            chunks("kt gateway", gateway.pid, ours_stream, f"/{TOKEN}{path}"),
        ]
    finally:
        gateway.stop()
        proxy.stop()
        upstream.stop()
        streams.close()


def calls(proxy: str, pid: int, url: str, folder: Path, seconds: float) -> Figure:
    """Load one URL with wrk and return the CPU of one call."""
    script = folder / "post.lua"
    lines = ('wrk.method="POST"', 'wrk.headers["content-type"]="application/json"', f"wrk.body=[[{REQUEST}]]")
    script.write_text("\n".join(lines))
    wrk(url, script, 1.0)
    return best(lambda: wrk(url, script, seconds / ROUNDS), proxy, "1 KB call", pid)


def chunks(proxy: str, pid: int, port: int, path: str, *, streams: int = 40) -> Figure:
    """Read streams one after another and return the CPU of one chunk."""
    read_streams(port, path, 4)
    per_round = max(1, streams // ROUNDS)
    return best(lambda: read_streams(port, path, per_round) * STREAM_CHUNKS, proxy, "streamed chunk", pid)


def best(work: Callable[[], int], proxy: str, what: str, pid: int) -> Figure:
    """Return the cheapest of several rounds: whatever else the machine does can only add to a figure."""
    rounds = []
    for _ in range(ROUNDS):
        before, began = cpu_s(pid), time.monotonic()
        units = work()
        rounds.append(figure(proxy, what, units, cpu_s(pid) - before, time.monotonic() - began))
    return min(rounds, key=lambda each: each.cpu_us)


def figure(proxy: str, what: str, units: int, cpu: float, wall: float) -> Figure:
    """Return the figure of `units` that took `cpu` and `wall` seconds."""
    return Figure(proxy, what, units, round(cpu / units * 1e6, 1), round(units / wall, 1))


def wrk(url: str, script: Path, seconds: float) -> int:
    """Run wrk and return the number of answered requests; errors end the bench."""
    command = ["wrk", "-t1", "-c8", f"-d{max(1, round(seconds))}s", "-s", str(script), url]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in told or "Socket errors" in told:
        raise SystemExit(f"the load generator saw errors:\n{told}")
    found = re.search(r"(\d+) requests in", told)
    assert found is not None, told
    return int(found[1])


def read_streams(port: int, path: str, count: int) -> int:
    """Read `count` streams to their ends on one connection; return `count`."""
    body = '{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}'
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for _ in range(count):
        connection.request("POST", path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        assert answer.read().endswith(b"data: [DONE]\n\n")
    connection.close()
    return count


def cpu_s(pid: int) -> float:
    """Return user + system time of a process, all threads that live.

    The scheduler's own nanoseconds where the kernel keeps them (/proc/<pid>/task/*/schedstat, first field): the ticks
    of /proc/<pid>/stat are sampled and miss most of a process that sleeps between short pieces of work.
    """
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
    except OSError:
        pass
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def table(figures: list[Figure]) -> str:
    """Return the figures as text, ours against nginx's."""
    plain = {each.what: each.cpu_us for each in figures if each.proxy == "nginx"}
    lines = [f"{'proxy':<12} {'unit':<16} {'CPU us':>9} {'x nginx':>8} {'per s':>10}"]
    for each in figures:
        ratio = each.cpu_us / plain[each.what]
        lines.append(
            f"{each.proxy:<12} {each.what:<16} {each.cpu_us:>9} {ratio:>8.1f} {each.units_per_s:>10}"
        )
    ours = next(each for each in figures if each.proxy == "kt gateway" and each.what == "1 KB call")
    verdict = "met" if ours.cpu_us <= TARGET_CALL_MS * 1000 else "missed"
    return "\n".join([*lines, f"target {TARGET_CALL_MS} ms CPU a 1 KB call: {verdict}"])


REQUEST = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 900}]})


def completion_of_bytes(size: int) -> str:
    """Return a completion of about `size` bytes."""
    usage = {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}
    message = {"role": "assistant", "content": "y" * (size - 260)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps(
        {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    )


if __name__ == "__main__":
    main()

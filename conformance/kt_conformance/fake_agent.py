"""An agent that does what its flags say, and with some of them lies: the kit's probe, and a stand-in for tests.

    python -m kt_conformance.fake_agent --observed-calls 3 --echo-stdin

Standard library only, one file: it may be copied anywhere, and run by any Python from 3.9 on. It lives until it is told
to stop, unless a flag says how it ends.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MARK = "KTESIO_USAGE"
PACE_S = 0.05
NEVER = threading.Event()
_SAYING = threading.Lock()


def say(text: str, *, stream: Any = None, end: str = "\n") -> None:
    """Print one line, whole, also where several threads print."""
    with _SAYING:
        out = stream or sys.stdout
        out.write(text + end)
        out.flush()


def parser() -> argparse.ArgumentParser:
    """Return the flags."""
    flags = argparse.ArgumentParser(prog="fake_agent", description=__doc__, allow_abbrev=False)
    ending = flags.add_argument_group("how it ends")
    ending.add_argument("--exit-fast", type=int, metavar="CODE", help="end with CODE at once")
    ending.add_argument("--linger-ms", type=int, metavar="MS", help="end with 0 after so long")
    ending.add_argument("--crash-after-ms", type=int, metavar="MS", help="crash after so long")
    ending.add_argument("--crash-with", type=int, default=1, metavar="CODE", help="what it crashes with")
    ending.add_argument("--crash-times", type=int, metavar="N", help="crash only N times, over all its lives")
    ending.add_argument("--crash-state", type=Path, metavar="PATH", help="where it counts them")
    ending.add_argument("--ignore-term", action="store_true", help="do not end on SIGTERM")
    ending.add_argument("--end-when-done", action="store_true", help="end with 0 once the work is done")

    showing = flags.add_argument_group("what it shows")
    showing.add_argument(
        "--dump", type=Path, metavar="PATH", help="write its arguments and environment there"
    )
    showing.add_argument("--drop-env", action="append", default=[], metavar="NAME", help="leave NAME out")
    showing.add_argument("--marker", type=Path, metavar="PATH", help="write its process id there")
    showing.add_argument("--heartbeat-ms", type=int, metavar="MS", help="print a beat every so often")
    showing.add_argument("--heartbeat-stderr-ms", type=int, metavar="MS", help="the same on standard error")
    showing.add_argument("--heartbeat-file", type=Path, metavar="PATH", help="append each beat there as well")
    showing.add_argument("--spawn-child", action="store_true", help="have a child that lives as long")

    usage = flags.add_argument_group("what it reports")
    usage.add_argument("--emit-usage", type=int, default=0, metavar="N", help="report N pieces of work")
    usage.add_argument("--replay-usage", action="store_true", help="report the first once more")
    usage.add_argument("--usage-input-tokens", type=int, default=10, metavar="N")
    usage.add_argument("--usage-output-tokens", type=int, default=20, metavar="N")
    usage.add_argument("--usage-cached-tokens", type=int, metavar="N")
    usage.add_argument(
        "--final-usage-no-newline", action="store_true", help="end the last report without one"
    )
    usage.add_argument("--report-calls", action="store_true", help="report what its calls used, where known")

    calls = flags.add_argument_group("what it calls")
    calls.add_argument("--observed-calls", type=int, default=0, metavar="N", help="ask the model N times")
    calls.add_argument("--observed-stream-calls", "--stream-calls", type=int, default=0, metavar="N",
                       help="ask it N times for a stream")  # fmt: skip
    calls.add_argument("--call-every-ms", type=int, metavar="MS", help="after that, ask on and on, so often")
    calls.add_argument("--base-url-env", default="OPENAI_BASE_URL", metavar="NAME")
    calls.add_argument("--base-url", metavar="URL", help="ask there, whatever the environment says")
    calls.add_argument("--key-env", default="OPENAI_API_KEY", metavar="NAME")
    calls.add_argument("--model-env", default="OPENAI_MODEL", metavar="NAME")
    calls.add_argument("--model", help="the model to ask for, whatever the environment says")
    calls.add_argument("--auth-header", metavar="VALUE", help="send this as Authorization")

    reading = flags.add_argument_group("what it reads")
    reading.add_argument("--echo-stdin", action="store_true", help="print each line as `stdin: LINE`")
    reading.add_argument("--ask-stdin", action="store_true", help="ask the model each line")
    reading.add_argument("--sniff-stdin-at-startup", action="store_true", help="say what standard input is")
    return flags


class Worker:
    """Does the work: calls and reports, numbered through within one life."""

    def __init__(self, flags: argparse.Namespace) -> None:
        self.flags = flags
        self.sequence = 0

    def work(self) -> None:
        """Do all that was asked for."""
        flags = self.flags
        for number in range(flags.emit_usage):
            last = number == flags.emit_usage - 1 and not flags.replay_usage
            self.report(
                flags.usage_input_tokens,
                flags.usage_output_tokens,
                cached=flags.usage_cached_tokens,
                end="" if last and flags.final_usage_no_newline else "\n",
            )
        if flags.replay_usage:
            self.print_usage(0, flags.usage_input_tokens, flags.usage_output_tokens)
        for number in range(flags.observed_calls):
            self.call(f"piece {number}", stream=False)
        for number in range(flags.observed_stream_calls):
            self.call(f"piece {number}", stream=True)
        while flags.call_every_ms:
            NEVER.wait(flags.call_every_ms / 1000)
            self.call("on and on", stream=False)

    def report(self, given: int, made: int, *, cached: int | None = None, end: str = "\n") -> None:
        """Report one piece of work."""
        self.print_usage(self.sequence, given, made, cached=cached, end=end)
        self.sequence += 1

    def print_usage(
        self, sequence: int, given: int, made: int, *, cached: int | None = None, end: str = "\n"
    ) -> None:
        """Print one usage line."""
        figures = {"sequence": sequence, "input_tokens": given, "output_tokens": made}
        if cached is not None:
            figures["cached_tokens"] = cached
        say(f"{MARK} {json.dumps(figures)}", end=end)

    def call(self, prompt: str, *, stream: bool) -> None:
        """Ask the model; an error is printed, and life goes on."""
        try:
            text, usage = self.ask(prompt, stream=stream)
        except (OSError, ValueError, http.client.HTTPException) as error:
            say(f"call failed: {type(error).__name__}: {error}", stream=sys.stderr)
            return
        say(f"model: {text}")
        if self.flags.report_calls and usage:
            self.report(int(usage["prompt_tokens"]), int(usage["completion_tokens"]))

    def ask(self, prompt: str, *, stream: bool) -> tuple[str, dict[str, Any] | None]:
        """Return what the model said, and the usage that came with it."""
        flags = self.flags
        base = urlsplit(flags.base_url or os.environ.get(flags.base_url_env, ""))
        if not base.netloc:
            raise ValueError(f"no base URL in {flags.base_url_env}")
        body: dict[str, Any] = {
            "model": flags.model or os.environ.get(flags.model_env) or "fake-model",
            "messages": [{"role": "user", "content": prompt}],
        }
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}} if flags.report_calls else {
                "stream": True
            }  # fmt: skip
        key = os.environ.get(flags.key_env, "none")
        headers = {"content-type": "application/json", "authorization": flags.auth_header or f"Bearer {key}"}
        connection = http.client.HTTPConnection(base.netloc, timeout=60)
        with contextlib.closing(connection):
            connection.request("POST", f"{base.path}/chat/completions", json.dumps(body), headers)
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != 200:
                raise OSError(f"status {answer.status}: {content[:200]!r}")
        return read_stream(content) if stream else read_answer(content)


def read_answer(content: bytes) -> tuple[str, dict[str, Any] | None]:
    """Return text and usage of a plain answer."""
    document = json.loads(content)
    return document["choices"][0]["message"]["content"], document.get("usage")


def read_stream(content: bytes) -> tuple[str, dict[str, Any] | None]:
    """Return text and usage of a stream, and insist on its end."""
    said, usage = "", None
    for line in content.splitlines():
        if line == b"data: [DONE]":
            return said, usage
        if line.startswith(b"data: "):
            event = json.loads(line[6:])
            usage = event.get("usage") or usage
            for choice in event["choices"]:
                said += choice["delta"].get("content") or ""
    raise OSError("the stream ended before its end")


def show(flags: argparse.Namespace) -> None:
    """Show what it was given."""
    for name in flags.drop_env:
        os.environ.pop(name, None)
    if flags.marker:
        flags.marker.write_text(f"{os.getpid()}\n")
    if flags.dump:
        lines = [f"arg={word}" for word in sys.argv[1:]]
        lines += [f"env={name}={value}" for name, value in sorted(os.environ.items())]
        draft = flags.dump.with_name(flags.dump.name + ".draft")
        draft.write_text("".join(f"{line}\n" for line in lines), errors="surrogateescape")
        draft.replace(flags.dump)
    if flags.sniff_stdin_at_startup:
        mode = os.fstat(0).st_mode
        say(f"stdin is {'a pipe' if mode & 0o170000 == 0o010000 else 'something else'}")
    if flags.spawn_child:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        say(f"child-pid={child.pid}")


def beat(every_ms: int, stream: Any, file: Path | None) -> None:
    """Print on and on."""
    number = 0
    while True:
        say(f"beat {number}", stream=stream)
        if file is not None:
            with file.open("a") as written:
                written.write(f"{number}\n")
        number += 1
        NEVER.wait(every_ms / 1000)


def crash(flags: argparse.Namespace) -> None:
    """End the process on its own, as often as it was told."""
    NEVER.wait(flags.crash_after_ms / 1000)
    if flags.crash_times is not None and flags.crash_state is not None:
        crashed = int(flags.crash_state.read_text() or 0) if flags.crash_state.exists() else 0
        if crashed >= flags.crash_times:
            return
        flags.crash_state.write_text(str(crashed + 1))
    os._exit(flags.crash_with)


def read_input(flags: argparse.Namespace, worker: Worker) -> None:
    """Read lines until there are no more."""
    for line in sys.stdin:
        text = line.rstrip("\r\n")
        if flags.echo_stdin:
            say(f"stdin: {text}")
        if flags.ask_stdin:
            worker.call(text, stream=False)


def begin(target: Any, *arguments: Any) -> None:
    """Do something beside the rest."""
    threading.Thread(target=target, args=arguments, daemon=True).start()


def main() -> int:
    """Read the flags and live."""
    flags, _ = parser().parse_known_args()  # what an adapter adds for its own agent is let pass
    if flags.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    show(flags)
    if flags.exit_fast is not None:
        return int(flags.exit_fast)
    worker = Worker(flags)
    if flags.heartbeat_ms:
        begin(beat, flags.heartbeat_ms, sys.stdout, flags.heartbeat_file)
    if flags.heartbeat_stderr_ms:
        begin(beat, flags.heartbeat_stderr_ms, sys.stderr, None)
    if flags.crash_after_ms is not None:
        begin(crash, flags)
    if flags.echo_stdin or flags.ask_stdin:
        begin(read_input, flags, worker)
    begun = time.monotonic()
    if flags.end_when_done:
        worker.work()
        return 0
    begin(worker.work)
    NEVER.wait(
        None if flags.linger_ms is None else max(flags.linger_ms / 1000 - (time.monotonic() - begun), 0)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Agents that are not what their adapters say. `python liar.py NAME`; standard library only.

Each breaks one promise, and keeps the others as well as it can.
"""

import http.client
import json
import os
import signal
import socket
import sys
import threading
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

BASE = os.environ.get("OPENAI_BASE_URL", "")
KEY = os.environ.get("OPENAI_API_KEY", "none")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def report(sequence: int, given: int, made: int) -> None:
    figures = {"sequence": sequence, "input_tokens": given, "output_tokens": made}
    say(f"KTESIO_USAGE {json.dumps(figures)}")


def ask(base: str, key: str = KEY, **more: Any) -> bytes:
    place = urlsplit(base)
    body = {
        "model": os.environ.get("OPENAI_MODEL", "m"),
        "messages": [{"role": "user", "content": "x"}],
        **more,
    }
    connection = http.client.HTTPConnection(place.netloc, timeout=30)
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    connection.request("POST", f"{place.path}/chat/completions", json.dumps(body), headers)
    return connection.getresponse().read()


def usage_of(answer: bytes) -> dict[str, int] | None:
    found: dict[str, int] | None = json.loads(answer).get("usage")
    return found


def live() -> None:
    while True:
        signal.pause()


def counts_a_replay_again() -> None:
    for sequence in range(3):
        report(sequence, 10, 20)
    report(3, 10, 20)


def says_other_numbers_the_second_time() -> None:
    report(0, 10, 20)
    report(1, 10, 20)
    report(0, 11, 20)


def writes_half_a_line() -> None:
    report(0, 10, 20)
    say('KTESIO_USAGE {"sequence": 1, "input_tokens": "ten"}')


def says_zero_for_unknown() -> None:
    used = usage_of(ask(BASE)) or {}
    report(0, used.get("prompt_tokens", 0), used.get("completion_tokens", 0))


def guesses_what_is_unknown() -> None:
    used = usage_of(ask(BASE)) or {"prompt_tokens": 5, "completion_tokens": 5}
    report(0, used["prompt_tokens"], used["completion_tokens"])


def counts_twice_what_was_used() -> None:
    used = usage_of(ask(BASE)) or {}
    report(0, 2 * used["prompt_tokens"], 2 * used["completion_tokens"])


def forgets_a_call() -> None:
    ask(BASE)
    used = usage_of(ask(BASE)) or {}
    report(0, used["prompt_tokens"], used["completion_tokens"])


def has_nothing_to_say() -> None:
    pass


def calls_without_the_token() -> None:
    place = urlsplit(BASE)
    ask(f"{place.scheme}://{place.netloc}/v1", "none")


def goes_around_its_base_url() -> None:
    settings = tomllib.loads(Path("config.toml").read_text())
    ask(settings["metering"]["upstream_base_url"])


def goes_around_now_and_then() -> None:
    ask(BASE)
    goes_around_its_base_url()


def uses_another_model() -> None:
    os.environ["OPENAI_MODEL"] = "my-favourite"
    ask(BASE)


def forbids_the_usage_of_its_streams() -> None:
    ask(BASE, stream=True, stream_options={"include_usage": False})


def reads_and_says_nothing() -> None:
    for _ in sys.stdin:
        pass


def closes_its_input() -> None:
    os.close(0)


def says_the_same_to_everything() -> None:
    for _ in sys.stdin:
        say("Certainly!")


def ends_soon() -> None:
    time.sleep(0.5)
    os._exit(3)


def does_not_come_back() -> None:
    mark = Path("pid")
    if mark.exists():
        say("another one is running")
        os._exit(1)
    mark.write_text("1")


def empties_its_memory() -> None:
    for path in Path(os.environ.get("MEMORY", "nowhere")).glob("*"):
        path.unlink()


def ends_with_the_engine() -> None:
    def watch() -> None:
        while True:
            with socket.socket(socket.AF_UNIX) as link:
                try:
                    link.connect("../../engine.sock")
                except OSError:
                    os._exit(0)
            time.sleep(0.02)

    threading.Thread(target=watch, daemon=True).start()


def writes_into_its_home() -> None:
    (Path(os.environ["HOME"]) / ".jbad").write_text("mine\n")


def leaves_temporary_files() -> None:
    (Path(os.environ["TMPDIR"]) / "session").mkdir()


def keeps_to_its_folder() -> None:
    (Path(os.environ["XDG_DATA_HOME"]) / "settings").write_text("mine\n")
    (Path(os.environ["HOME"]) / ".gitconfig").write_text("[user]\n")


def stops_working_once_thawed() -> None:
    """Beat until a beat takes long: then it was paused, and has nothing to do any more."""
    last = time.monotonic()
    while time.monotonic() - last < 0.6:
        last = time.monotonic()
        say("beat")
        time.sleep(0.05)


def has_a_daemon_do_it() -> None:
    """Tell a process that is nobody's descendant where to work: it goes on whatever becomes of this one."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(sys.argv[2])
        link.sendall(os.fsencode(Path.cwd()))


LIES: dict[str, Callable[[], None]] = {
    name: lie
    for name, lie in list(globals().items())
    if callable(lie)
    and getattr(lie, "__module__", None) == __name__
    and name not in ("say", "report", "ask", "live", "usage_of")
}

if __name__ == "__main__":
    if sys.argv[1] == "ignores-term":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        LIES[sys.argv[1]]()
    live()

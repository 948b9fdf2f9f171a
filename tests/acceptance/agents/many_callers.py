"""An agent with many clients that never try again: each call's outcome as a line of JSON; some leave at once.

usage: many_callers.py CLIENTS STOP_FILE OUT
"""

import http.client
import json
import os
import sys
import threading
import time
import urllib.parse
from pathlib import Path

CASES = (("plain-json", False), ("stream-not-asked", True))


def call(base: urllib.parse.SplitResult, model: str, *, stream: bool, leave: bool) -> str:
    """Make one call on a connection of its own; return its outcome in a word."""
    body = json.dumps({"model": model, "stream": stream, "messages": [{"role": "user", "content": "hello"}]})
    connection = http.client.HTTPConnection(base.hostname or "", base.port or 0, timeout=60)
    try:
        connection.request(
            "POST", f"{base.path}/chat/completions", body, {"content-type": "application/json"}
        )
        if leave:
            return "left"
        answer = connection.getresponse()
        got = answer.read()
        return "ok" if answer.status == 200 and got else f"status {answer.status}"
    except ConnectionRefusedError:
        return "refused"
    except TimeoutError:
        return "timeout"
    except (OSError, http.client.HTTPException):
        return "cut"
    finally:
        connection.close()


def main() -> None:
    clients, stop, out = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    base = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
    lines: list[str] = []

    def work(number: int) -> None:
        turn = 0
        while not stop.exists():
            turn += 1
            case, stream = CASES[turn % 2]
            leave = number % 4 == 0
            model = f"{case}@{number}-{turn}"
            began = time.monotonic()
            outcome = call(base, model, stream=stream, leave=leave)
            facts = {"model": model, "outcome": outcome, "ended_at_ns": time.time_ns()}
            lines.append(json.dumps({**facts, "took_s": time.monotonic() - began}))
            time.sleep(0.05)  # an agent thinks

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

"""An agent that makes the calls named on its command line, one after the other, and never tries one again.

usage: plain_caller.py [--repeat N] CASE ...    (CASE! asks for a stream)
"""

import argparse
import http.client
import json
import os
import threading
import urllib.parse


def call(connection: http.client.HTTPConnection, path: str, model: str, *, stream: bool) -> None:
    """Make one call on the connection that there is; where it breaks, the next one makes another."""
    body = {"model": model, "stream": stream, "messages": [{"role": "user", "content": "hello"}]}
    try:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        connection.close()


def main() -> None:
    cli = argparse.ArgumentParser()
    cli.add_argument("--repeat", type=int, default=1)
    cli.add_argument("--linger-s", type=float, default=0.0, help="stay up for so long, to count as started")
    cli.add_argument("cases", nargs="+")
    args = cli.parse_args()
    base = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
    connection = http.client.HTTPConnection(base.hostname or "", base.port or 0, timeout=60)
    for n in range(args.repeat):
        for i, case in enumerate(args.cases):
            model, stream = f"{case.rstrip('!')}@{n}-{i}", case.endswith("!")
            call(connection, f"{base.path}/chat/completions", model, stream=stream)
    threading.Event().wait(args.linger_s)


if __name__ == "__main__":
    main()

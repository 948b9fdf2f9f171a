"""An agent that somebody else wrote: asks a model and prints what it said. It knows nothing of whoever runs it.

    OPENAI_BASE_URL=http://... python opaque.py MODEL...

Asks each MODEL in turn, with an HTTP client of its own; a model whose name ends in `+stream` (taken off again) is
streamed. Standard library only.
"""
# ruff: noqa: T201 (an agent prints)

import http.client
import json
import os
import signal
import sys
from urllib.parse import urlsplit

BASE = urlsplit(os.environ["OPENAI_BASE_URL"])
STREAM_MARK = "+stream"


def ask(model: str, *, stream: bool) -> str:
    """Return what the model said."""
    connection = http.client.HTTPConnection(BASE.netloc, timeout=30)
    messages = [{"role": "user", "content": "Say something about ledgers."}]
    body: dict[str, object] = {"model": model, "messages": messages}
    if stream:
        body["stream"] = True
    headers = {
        "content-type": "application/json",
        "authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "none"),
    }
    connection.request("POST", f"{BASE.path}/chat/completions", json.dumps(body), headers)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise OSError(f"status {answer.status}: {content[:200]!r}")
    if answer.getheader("content-encoding") == "gzip":
        import gzip

        content = gzip.decompress(content)
    return streamed(content) if stream else json.loads(content)["choices"][0]["message"]["content"]


def streamed(content: bytes) -> str:
    """Return the text of a stream, and insist on its end."""
    said = ""
    for line in content.splitlines():
        if line == b"data: [DONE]":
            return said
        if line.startswith(b"data: "):
            choices = json.loads(line[6:])["choices"]
            said += choices[0]["delta"].get("content") or ""  # an empty `choices` here would break this agent
    raise OSError("the stream ended before its end")


def main() -> None:
    """Ask all models; a failure is printed, and the next one is asked. Then wait to be stopped, as a service does."""
    for word in sys.argv[1:]:
        model = word.removesuffix(STREAM_MARK)
        try:
            print(f"{model}: {ask(model, stream=word.endswith(STREAM_MARK))[:60]}", flush=True)
        except (OSError, http.client.HTTPException) as error:
            print(f"{model}: failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    print("waiting for work", flush=True)
    signal.pause()


main()

"""An agent that asks a model and counts for itself as well; its own figures leave out a call that it forgets.

    OPENAI_BASE_URL=http://... python both.py MODEL...

Reports every call but the last, as agents do that ask for a title on the side. Standard library only.
"""
# ruff: noqa: T201 (an agent prints)

import http.client
import json
import os
import signal
import sys
import time
from urllib.parse import urlsplit

PACE_S = 0.4
BASE = urlsplit(os.environ["OPENAI_BASE_URL"])


def ask(model: str) -> dict[str, int]:
    """Return the usage that came with the model's answer."""
    connection = http.client.HTTPConnection(BASE.netloc, timeout=30)
    body = json.dumps(
        {"model": model, "messages": [{"role": "user", "content": "Say something about ledgers."}]}
    )
    connection.request("POST", f"{BASE.path}/chat/completions", body, {"content-type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    print(f"{model}: {answer['choices'][0]['message']['content'][:60]}", flush=True)
    usage: dict[str, int] = answer["usage"]
    return usage


for sequence, name in enumerate(sys.argv[1:]):
    time.sleep(PACE_S)
    used = ask(name)
    if sequence < len(sys.argv) - 2:
        figures = {
            "sequence": sequence,
            "input_tokens": used["prompt_tokens"],
            "output_tokens": used["completion_tokens"],
        }
        print(f"KTESIO_USAGE {json.dumps(figures)}", flush=True)

print("waiting for work", flush=True)
signal.pause()

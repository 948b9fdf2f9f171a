"""Raw calls to a listener, as anybody on this machine could make them."""

import contextlib
import http.client
import json
from urllib.parse import urlsplit

REFUSED = 0
"""In place of a status: nobody listens there, or it was hung up on."""


def ask(url: str, *, key: str = "none", timeout_s: float = 5.0) -> int:
    """Ask a model at a base URL, and return the status."""
    place = urlsplit(url)
    body = json.dumps({"model": "tck-intruder", "messages": [{"role": "user", "content": "Let me in."}]})
    connection = http.client.HTTPConnection(place.netloc, timeout=timeout_s)
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    with contextlib.closing(connection):
        try:
            connection.request("POST", f"{place.path}/chat/completions", body, headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        except (OSError, http.client.HTTPException):
            return REFUSED

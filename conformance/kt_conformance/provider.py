"""A throw-away model provider on loopback: answers chat completions, plain and streamed, and remembers every call.

No two answers use the same number of tokens, so that a call that is lost, doubled or swapped shows in the sums. It can
be told to hold its answers (which keeps an agent at work as long as a section needs it there) and to keep silent about
usage. It knows nothing of the gateway. Threads, since the kit around it blocks.
"""

import contextlib
import http.server
import json
import secrets
import socketserver
import threading
from collections.abc import Iterator
from typing import Any, Self

from kt_conformance.provider_call import ProviderCall

INPUT_TOKENS, OUTPUT_TOKENS = 30, 70
"""What the first answer uses; each further one uses 1 and 2 more."""

ANSWER = "The kit's provider says hello."
LONGEST_BODY_BYTES = 32 << 20
LONGEST_HOLD_S = 60.0


class Provider:
    """A provider that listens from its making to its `close`. A context manager."""

    def __init__(self) -> None:
        self.key = f"sk-tck-{secrets.token_urlsafe(18)}"
        self._calls: list[ProviderCall] = []
        self._turn = threading.Lock()
        self._flowing = threading.Event()
        self._flowing.set()
        self._tells_usage = True
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Its base URL, as an operator would set it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def calls(self) -> list[ProviderCall]:
        """Return the calls for a model's answer so far."""
        with self._turn:
            return [call for call in self._calls if not call.refused]

    def begin_anew(self) -> None:
        """Forget all calls, hold nothing, tell usage."""
        with self._turn:
            self._calls = []
        self._tells_usage = True
        self._flowing.set()

    def hold(self) -> None:
        """Answer no call until `release`."""
        self._flowing.clear()

    def release(self) -> None:
        """Answer what was held, and what comes."""
        self._flowing.set()

    def keep_usage_silent(self) -> None:
        """Leave the usage out of all further answers."""
        self._tells_usage = False

    def close(self) -> None:
        """Stop listening; what is held is let go."""
        self._flowing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5.0)

    def __enter__(self) -> Self:
        """Return the provider."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    # -- for the connections -----------------------------------------------------------------------------------
    def note(self, call: ProviderCall) -> None:
        """Remember a call that has come, and decide what it uses."""
        with self._turn:
            call.number = len(self._calls)
            if not call.refused and self._tells_usage:
                call.input_tokens = INPUT_TOKENS + call.number
                call.output_tokens = OUTPUT_TOKENS + 2 * call.number
            self._calls.append(call)

    def wait(self) -> None:
        """Wait while answers are held."""
        self._flowing.wait(LONGEST_HOLD_S)


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        super().__init__(("127.0.0.1", 0), _Connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that left is seen in the log of calls."""


class _Connection(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = LONGEST_HOLD_S
    server: _Server

    def do_GET(self) -> None:
        """Answer the list of models, and nothing else."""
        call = self._call("")
        if self.path.rstrip("/").endswith("/models"):
            self._send(
                call, 200, {"object": "list", "data": [{"id": "tck-model", "object": "model"}]}, told=False
            )
        else:
            self._refuse(call, 404, "only /v1/models and /v1/chat/completions are here")

    def do_POST(self) -> None:
        """Answer a chat completion."""
        call = self._call(self._body())
        request = _object(call.text)
        if not self.path.partition("?")[0].endswith("/chat/completions"):
            self._refuse(call, 404, "only /v1/models and /v1/chat/completions are here")
            return
        if not isinstance(request.get("messages"), list):
            self._refuse(call, 400, "wanted an object with messages")
            return
        call.model, call.stream = str(request.get("model", "")), request.get("stream") is True
        self.server.provider.note(call)
        self.server.provider.wait()
        if call.stream:
            self._stream(call, told=_asks_for_usage(request))
        else:
            self._send(call, 200, _completion(call), told=True)

    def log_message(self, *_: Any) -> None:
        """Write nothing to standard error."""

    def _call(self, text: str) -> ProviderCall:
        given = self.headers.get("authorization", "") or self.headers.get("x-api-key", "")
        key = given.removeprefix("Bearer ").strip()
        return ProviderCall(number=-1, method=self.command, path=self.path, key=key, text=text)

    def _body(self) -> str:
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            return self._chunks()
        length = self.headers.get("content-length", "0")
        size = int(length) if length.isdecimal() else 0
        return self.rfile.read(min(size, LONGEST_BODY_BYTES)).decode("utf-8", "replace")

    def _chunks(self) -> str:
        pieces, size = [], 0
        while (
            count := int(self.rfile.readline(64).partition(b";")[0] or b"0", 16)
        ) and size < LONGEST_BODY_BYTES:
            pieces.append(self.rfile.read(count))
            size += count
            self.rfile.readline(4)
        while self.rfile.readline(8192).strip():
            pass  # trailers
        return b"".join(pieces).decode("utf-8", "replace")

    def _refuse(self, call: ProviderCall, status: int, why: str) -> None:
        call.refused = True
        self.server.provider.note(call)
        self._send(call, status, {"error": {"message": why, "code": "not_here"}}, told=False)

    def _send(self, call: ProviderCall, status: int, document: dict[str, Any], *, told: bool) -> None:
        content = json.dumps(document).encode()
        # Before its last byte leaves: whoever has the answer finds it in the log.
        call.answered = told
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, call: ProviderCall, *, told: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if not told:
            call.input_tokens = call.output_tokens = None
        for event in _events(call):
            self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
        call.answered = True
        self.wfile.write(b"0\r\n\r\n")


def _events(call: ProviderCall) -> Iterator[bytes]:
    head = {"id": f"tck-{call.number}", "object": "chat.completion.chunk", "created": 0, "model": call.model}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": ANSWER[at : at + 7]} for at in range(0, len(ANSWER), 7)]
    for delta in deltas:
        yield _event(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if call.input_tokens is not None:
        yield _event(head | {"choices": [], "usage": _usage(call)})
    yield b"data: [DONE]\n\n"


def _event(document: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(document)}\n\n".encode()


def _completion(call: ProviderCall) -> dict[str, Any]:
    message = {"role": "assistant", "content": ANSWER}
    document: dict[str, Any] = {
        "id": f"tck-{call.number}",
        "object": "chat.completion",
        "created": 0,
        "model": call.model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    return document if call.input_tokens is None else document | {"usage": _usage(call)}


def _usage(call: ProviderCall) -> dict[str, int]:
    given, made = call.input_tokens or 0, call.output_tokens or 0
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def _asks_for_usage(request: dict[str, Any]) -> bool:
    options = request.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _object(text: str) -> dict[str, Any]:
    with contextlib.suppress(ValueError, RecursionError):
        document = json.loads(text)
        return document if isinstance(document, dict) else {}
    return {}

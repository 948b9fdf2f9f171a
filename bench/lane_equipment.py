"""What the lane's bench runs: providers, nginx as a plain proxy, and our gateway, each in its own folder."""

import json
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from kt_ledger import layout, unix_socket

TOKEN = "bench-token"
STREAM_CHUNKS = 200


class StreamProvider:
    """Sends streams of small events, each in a packet of its own."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                endpoint, _ = self.listener.accept()
            except OSError:
                return
            endpoint.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(endpoint,), daemon=True).start()

    def _serve(self, endpoint: socket.socket) -> None:
        with endpoint:
            buffer = b""
            while True:
                while b"\r\n\r\n" not in buffer or not _whole(buffer):
                    data = endpoint.recv(65536)
                    if not data:
                        return
                    buffer += data
                buffer = b""
                self._stream(endpoint)

    def _stream(self, endpoint: socket.socket) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        endpoint.sendall(head)
        for number in range(STREAM_CHUNKS):
            endpoint.sendall(_chunk(_event(number, last=number == STREAM_CHUNKS - 1)))
            time.sleep(0.0005)  # a provider's pause: without it the kernel would merge the packets
        endpoint.sendall(_chunk(_USAGE) + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    def close(self) -> None:
        """Stop accepting."""
        self.listener.close()


def _whole(buffer: bytes) -> bool:
    head, _, body = buffer.partition(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    return found is None or len(body) >= int(found[1])


def _event(number: int, *, last: bool) -> bytes:
    choice = {"index": 0, "delta": {"content": f"w{number} "}, "finish_reason": "stop" if last else None}
    return b"data: " + json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode() + b"\n\n"


_USAGE = b'data: {"id":"c","model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":200}}\n\n'


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Nginx:
    """One nginx in a folder of its own."""

    def __init__(self, folder: Path, config: str) -> None:
        folder.mkdir(parents=True)
        binary = shutil.which("nginx") or "/usr/sbin/nginx"
        path = folder / "nginx.conf"
        path.write_text(config.replace("FOLDER", str(folder)))
        self._process = subprocess.Popen(
            [binary, "-p", str(folder), "-c", str(path), "-e", str(folder / "error.log")]
        )
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        while not (found := children.read_text().split()):
            time.sleep(0.01)
        self.worker_pid = int(found[0])

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(10)


_NGINX = """daemon off; worker_processes 1; pid FOLDER/pid;
events { worker_connections 512; }
http { access_log off; keepalive_requests 1000000000; client_body_temp_path FOLDER/b; proxy_temp_path FOLDER/p;
fastcgi_temp_path FOLDER/f; uwsgi_temp_path FOLDER/u; scgi_temp_path FOLDER/s;
%s
}
"""


def upstream_config(port: int, body: str) -> str:
    """Return the configuration of the provider."""
    answer = body.replace("'", "")
    server = "server { listen 127.0.0.1:%d; location / { default_type application/json; return 200 '%s'; } }"
    return _NGINX % (server % (port, answer))


def proxy_config(port: int, upstream: int, stream_port: int, stream_upstream: int) -> str:
    """Return the configuration of the proxy to compare with."""
    passing = "proxy_http_version 1.1; proxy_set_header Connection ''; proxy_buffering off;"
    parts = []
    for name, listen, target in (("u", port, upstream), ("s", stream_port, stream_upstream)):
        parts.append(
            f"upstream {name} {{ server 127.0.0.1:{target}; keepalive 64; keepalive_requests 1000000000; }}\n"
            f"server {{ listen 127.0.0.1:{listen}; location / {{ proxy_pass http://{name}; {passing} }} }}"
        )
    return _NGINX % "\n".join(parts)


class GatewayProcess:
    """Our gateway in a state directory of its own."""

    def __init__(self, state: Path) -> None:
        self._files = layout.StateLayout(state).gateway
        self._process = subprocess.Popen([sys.executable, "-m", "kt_addons", "--state-dir", str(state)])
        self.pid = self._process.pid
        while not self._files.record.exists():
            time.sleep(0.02)

    def put(self, instance: str, upstream: str) -> int:
        """Make a listener; return its port."""
        grants = [{"run_id": "bench", "token": TOKEN}]
        body = json.dumps({"name": instance, "port": 0, "upstream": upstream, "grants": grants}).encode()
        with socket.socket(socket.AF_UNIX) as client:
            unix_socket.connect(client, self._files.admin)
            head = f"PUT /v1/listeners/{instance} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
            client.sendall(head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body)
            answer = b""
            while data := client.recv(4096):
                answer += data
        return int(json.loads(answer.partition(b"\r\n\r\n")[2])["port"])

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(20)


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])

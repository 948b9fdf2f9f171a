"""How to tell that an agent is ready: what was frozen of `[kt.ready]`, as a probe of one Run. Pure, waits for nothing.

Whoever waits feeds `LineMatcher` with what the agent prints, or `StatusLine` with what it answers, and is told.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from kt_manifest import exit_codes
from kt_manifest.contract.snapshot import Ready
from kt_manifest.launch import executable
from kt_manifest.line_pattern import LinePattern

LONGEST_LINE_BYTES = 64 * 1024
"""Of a longer line, this much is looked at."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})[ \r\n]")
_LONGEST_STATUS_BYTES = 1024


class ProbeUnresolved(Exception):
    """What `[kt.ready]` refers to is not in the agent's environment; nothing was started."""

    exit_code = exit_codes.FAILED

    def __init__(self, what: str, *, got: str, wanted: str) -> None:
        self.got = got
        self.wanted = wanted
        self.do = "map a setting to that variable, set agent.NAME, or name the port in the adapter"
        super().__init__(
            f"cannot tell when the agent is ready by {what}: got {got}, wanted {wanted}; {self.do}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What is waited for in one Run; `way` (line, port, http, command) says which fields count.

    A port is tried on each of `hosts`; `path` of an HTTP probe begins with a slash; `argv[0]` is absolute.
    """

    way: str
    deadline_s: float
    stream: str = "any"
    line: str = ""
    hosts: tuple[str, ...] = ()
    port: int = 0
    path: str = ""
    argv: tuple[str, ...] = ()

    def request(self) -> bytes:
        """Return the request of an HTTP probe; the answer goes into a `StatusLine`."""
        host = f"[{self.hosts[0]}]" if ":" in self.hosts[0] else self.hosts[0]
        head = f"GET {self.path} HTTP/1.1\r\nhost: {host}:{self.port}\r\nconnection: close\r\naccept: */*\r\n\r\n"
        return head.encode("ascii")


class LineMatcher:
    """Looks for a pattern in the lines of one stream, however they are cut; whole lines count, with or without a CR."""

    def __init__(self, pattern: LinePattern) -> None:
        self._pattern = pattern
        self._line = bytearray()
        self.found = False

    def feed(self, data: bytes) -> bool:
        """Take what was printed; tell whether the pattern has been found by now."""
        begin = 0
        while not self.found and (end := data.find(b"\n", begin)) >= 0:
            self._keep(data, begin, end)
            text = self._line.removesuffix(b"\r").decode("utf-8", "replace")
            self._line.clear()
            self.found = self._pattern.found_in(text)
            begin = end + 1
        if not self.found:
            self._keep(data, begin, len(data))
        return self.found

    def _keep(self, data: bytes, begin: int, end: int) -> None:
        self._line += data[begin : min(end, begin + LONGEST_LINE_BYTES - len(self._line))]


class StatusLine:
    """Reads the first line of an HTTP answer; `ready` is None until it is there, then whether it is 2xx or 3xx."""

    def __init__(self) -> None:
        self._seen = b""
        self.ready: bool | None = None

    def feed(self, data: bytes) -> bool | None:
        """Take what was answered; the end of the answer is empty data."""
        if self.ready is None:
            self._seen = (self._seen + data)[:_LONGEST_STATUS_BYTES]
            found = _STATUS.match(self._seen)
            if found is not None:
                self.ready = found[1][:1] in (b"2", b"3")
            elif not data or b"\n" in self._seen or len(self._seen) == _LONGEST_STATUS_BYTES:
                self.ready = False
        return self.ready


def probe(ready: Ready, env: Mapping[str, str], cwd: Path) -> Probe:
    """Return what is waited for, once the agent's final environment is known.

    Raises:
        ProbeUnresolved: a variable is missing, or does not lead to loopback and a port.
        ExecutableMissing, NotExecutable: the program of `command`.
    """
    if ready.line is not None:
        return Probe(way="line", deadline_s=ready.deadline_s, stream=ready.stream, line=ready.line)
    if ready.command is not None:
        program = executable.find_executable(ready.command[0], env, cwd)
        return Probe(way="command", deadline_s=ready.deadline_s, argv=(program, *ready.command[1:]))
    if ready.port is not None:
        number = _port(_resolved(ready.port, env, "port"))
        if number is None:
            raise ProbeUnresolved("port", got=f"a value of {ready.port} that is no port", wanted="1 to 65535")
        return Probe(way="port", deadline_s=ready.deadline_s, hosts=("127.0.0.1", "::1"), port=number)
    assert ready.http is not None, "judged before"
    url = _resolved(ready.http, env, "http")
    if fault_in_url(url):
        # The URL itself is not shown: what a variable holds may be a secret.
        raise ProbeUnresolved(
            "http", got=f"{ready.http} with unusable values", wanted="a URL on loopback with a port"
        )
    parts = urlsplit(url)
    assert parts.port is not None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Probe(
        way="http", deadline_s=ready.deadline_s, hosts=(parts.hostname or "",), port=parts.port, path=path
    )


def fault_in_url(url: str) -> str | None:
    """Say why a URL, its variables put in, cannot be asked; None when it can."""
    if not all("!" <= char <= "~" for char in url):
        return "with a space, a control character or one outside ASCII"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # its message quotes the URL, whatever is in it
        return "whose host or port cannot be read"
    if parts.scheme != "http" or "@" in parts.netloc or "#" in url:
        return "which is not plain http, or has a user or a fragment"
    if parts.hostname not in LOOPBACK:
        return "whose host is not this machine's loopback"
    return None if port else "without a port"


def _resolved(text: str, env: Mapping[str, str], way: str) -> str:
    for name in VARIABLE.findall(text):
        if not env.get(name):
            raise ProbeUnresolved(
                way, got=f"no {name} in the agent's environment", wanted=f"a value for {text}"
            )
    return VARIABLE.sub(lambda found: env[found[1]], text)


def _port(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= 5
    return int(text) if is_number and 1 <= int(text) <= 65535 else None

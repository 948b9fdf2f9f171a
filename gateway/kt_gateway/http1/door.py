"""Who may come in, on whose behalf, and where to: one listener's rules, judged on a request's head alone.

An immutable snapshot of a `Listener` message; a new message makes a new door, which the next request passes through.
"""

import hmac
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from kt_gateway.http1 import answers, head, paths, rewrite
from kt_ledger import messages
from kt_ledger.values import Reason

LOOPBACK_NAMES = frozenset({b"localhost", b"127.0.0.1", b"[::1]"})
_TOKEN = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]*")
_KEY = re.compile(r"[!-~]+")
_RUN_TOKEN = re.compile(rb"[A-Za-z0-9_-]{43}")
"""What a Run's token looks like: 32 random bytes in base64url without padding (RFC 4648 section 5)."""
HOLD_LIMIT_S = 30 * 86400
_DEFAULT_PORTS = {"http": 80, "https": 443}
_FORWARDING = frozenset(
    {b"origin", b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"}
)


class RulesInvalid(ValueError):
    """A listener message whose rules cannot be kept; the message says which, and what was wanted."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where a listener's calls go."""

    host: str
    port: int
    tls: bool
    authority: bytes  # the Host header's value
    prefix: bytes  # the path of the URL, without a trailing slash

    @classmethod
    def parse(cls, url: str) -> "Upstream":
        """Read an absolute http(s) URL; raises RulesInvalid."""
        try:
            parts = urlsplit(url)
            port = parts.port or _DEFAULT_PORTS[parts.scheme]
            host = parts.hostname or ""
            if not host or parts.username or parts.query or parts.fragment:
                raise ValueError("no host, or more than scheme, host, port and path")
            name = f"[{host}]" if ":" in host else host.encode("idna").decode()
            authority = name if port == _DEFAULT_PORTS[parts.scheme] else f"{name}:{port}"
            prefix = parts.path.rstrip("/").encode("ascii")
        except (ValueError, KeyError) as error:
            raise RulesInvalid(
                f"got upstream {url!r}, wanted http(s)://host[:port][/path]: {error}"
            ) from error
        return cls(host, port, parts.scheme == "https", authority.encode(), prefix)


@dataclass(frozen=True, slots=True)
class Entry:
    """A request that may go on: for which Run, and to which path and query at the provider."""

    run_id: str | None
    path: bytes
    query: bytes
    token: bytes | None

    @property
    def target(self) -> bytes:
        """Return the request target at the provider."""
        return b"%b?%b" % (self.path, self.query) if self.query else self.path


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that the gateway answers itself.

    `reason` None: it leaves no row. `counted` names the note in which such requests are counted.
    """

    answer: answers.Answer
    reason: Reason | None = None
    counted: str | None = None
    run_id: str | None = None
    path: bytes = b""
    close: bool = False


class Door:
    """The rules of one listener, as of one message."""

    def __init__(self, listener: messages.Listener) -> None:
        """Take the rules; raises RulesInvalid."""
        self.listener = listener
        _check(listener)
        self.upstream = Upstream.parse(listener.upstream)
        self.key = listener.upstream_api_key
        self._grants = tuple((grant.token.encode(), grant.run_id) for grant in listener.grants)
        self._hosts = LOOPBACK_NAMES | {name + b":%d" % listener.port for name in LOOPBACK_NAMES}
        self._open = listener.listener_auth == "none"
        self.hold_s = listener.hold_s

    def judge(self, start: head.RequestStart) -> Entry | Refusal:
        """Return where this request goes, or what it is told instead."""
        refused = self._judge_form(start) or self._judge_origin(start)
        if refused is not None:
            return refused
        path, _, query = start.target.partition(b"?")
        run_id, token, rest = self._recognise(start, path)
        if run_id is None:
            return self._stranger(path)
        if rest == messages.PROBE_PATH.encode():
            return Refusal(answers.Answer(204))
        if _wants_websocket(start.headers):
            return Refusal(_UPGRADE_REFUSED, counted="upgrade_refused", run_id=run_id)
        at_upstream = paths.at_upstream(rest, self.upstream.prefix)
        if at_upstream is None:
            return Refusal(_NO_SUCH_PATH, counted="probe", run_id=run_id)
        return Entry(run_id, at_upstream, _without_token(query, token), token)

    def paused(self, path: bytes) -> answers.Answer:
        """Return what a call is told that cannot be held, or not any longer."""
        return answers.final(
            path,
            "instance_paused",
            f"agent instance {self.listener.name} is paused: `kt agent resume` it",
        )

    def _judge_form(self, start: head.RequestStart) -> Refusal | None:
        """Refuse what is not an origin-form request to a loopback name."""
        if not start.target.startswith(b"/") or b"#" in start.target:
            return _bad("got a request target that is not a path, wanted `/...`: kt is not a forward proxy")
        if paths.is_sly(start.target.partition(b"?")[0]):
            return _bad("got a path with dot segments or encoded separators")
        hosts = head.values(start.headers, b"host")
        if len(hosts) > 1 or (not hosts and start.minor == 1):
            return _bad("got no Host header, or several")
        if hosts and hosts[0].lower() not in self._hosts:
            return Refusal(_HOST_REFUSED, Reason.REFUSED_HOST, close=True)
        return None

    def _judge_origin(self, start: head.RequestStart) -> Refusal | None:
        """Without a token, refuse what a browser or another proxy sent (DNS rebinding)."""
        if not self._open or not any(name.lower() in _FORWARDING for name, _ in start.headers):
            return None
        return Refusal(_ORIGIN_REFUSED, Reason.REFUSED_HOST, close=True)

    def _recognise(self, start: head.RequestStart, path: bytes) -> tuple[str | None, bytes | None, bytes]:
        """Return (Run, its token, the path without it)."""
        first, _, rest = path[1:].partition(b"/")
        found = self._grant(first)
        if found is not None:
            return found[1], found[0], b"/" + rest if rest or path.endswith(b"/") else b""
        if self.key is not None:
            for name, value in start.headers:
                if name.lower() in rewrite.CREDENTIALS:
                    found = self._grant(_credential(value)) or found
            if found is not None:
                return found[1], found[0], path
        if self._open and self._grants and not self._speaks_for_another(start, first):
            return self._grants[-1][1], None, path
        return None, None, path

    def _speaks_for_another(self, start: head.RequestStart, first: bytes) -> bool:
        """Return whether a request without a token of ours carries what looks like one, as a former Run's would."""
        if _RUN_TOKEN.fullmatch(first) is not None:
            return True
        if self.key is None:
            return False  # the agent brings a provider's key of its own, whatever that looks like
        offered = (_credential(value) for name, value in start.headers if name.lower() in rewrite.CREDENTIALS)
        return any(_RUN_TOKEN.fullmatch(value) is not None for value in offered)

    def _grant(self, offered: bytes) -> tuple[bytes, str] | None:
        """Return the grant whose token was offered; looks at all of them, each in constant time."""
        found = None
        for grant in self._grants:
            if hmac.compare_digest(grant[0], offered):
                found = grant
        return found

    def _stranger(self, path: bytes) -> Refusal:
        """Refuse a request without a valid token; its row has the path without what may be an old token."""
        inside = self._plausible(path)
        if not self._grants:
            answer = answers.final(
                path,
                "instance_stopped",
                f"agent instance {self.listener.name} is stopped: `kt agent start` it",
            )
            return Refusal(answer, Reason.INSTANCE_STOPPED, path=inside or b"")
        if inside is None:
            return Refusal(_NO_SUCH_PATH, counted="probe")
        return Refusal(TOKEN_REFUSED, Reason.REFUSED_TOKEN, path=inside)

    def _plausible(self, path: bytes) -> bytes | None:
        """Return the provider's path that was meant, were its first segment a token or were there none."""
        _, slash, rest = path[1:].partition(b"/")
        behind = paths.at_upstream(slash + rest, self.upstream.prefix) if slash else None
        if self.upstream.prefix or behind is not None:
            return behind or paths.at_upstream(path, self.upstream.prefix)
        return b"/"


def _check(listener: messages.Listener) -> None:
    if listener.listener_auth not in ("token", "none"):
        raise RulesInvalid(f"got listener_auth {listener.listener_auth!r}, wanted 'token' or 'none'")
    for grant in listener.grants:
        if not isinstance(grant.token, str) or _TOKEN.fullmatch(grant.token) is None:
            raise RulesInvalid(
                f"got a token for run {grant.run_id!r} that no path can carry, wanted [A-Za-z0-9._~-]+"
            )
    hold_s = listener.hold_s
    if hold_s is not None and (isinstance(hold_s, bool) or not 0 <= hold_s <= HOLD_LIMIT_S):
        raise RulesInvalid(f"got hold_s {hold_s!r}, wanted seconds from 0 to {HOLD_LIMIT_S}")
    key = listener.upstream_api_key
    if key is not None and (not isinstance(key, str) or _KEY.fullmatch(key) is None):
        raise RulesInvalid(
            "got an upstream_api_key that no header can carry, wanted visible ASCII characters"
        )


def _bad(why: str) -> Refusal:
    return Refusal(answers.error(400, "bad_request", why), Reason.BAD_REQUEST, close=True)


def _credential(value: bytes) -> bytes:
    scheme, _, rest = value.partition(b" ")
    return rest.strip() if scheme.lower() == b"bearer" else value


def _wants_websocket(headers: head.Headers) -> bool:
    # An h2c upgrade is a mere offer, which RFC 9110 section 7.8 lets a server ignore; Java's client makes it each time.
    return any(value.lower() != b"h2c" for value in head.values(headers, b"upgrade"))


def _without_token(query: bytes, token: bytes | None) -> bytes:
    if token is None or token not in query:
        return query
    return b"&".join(part for part in query.split(b"&") if token not in part)


_NO_SUCH_PATH = answers.error(
    404, "not_found", "no such path at this agent's provider; nothing was forwarded"
)
TOKEN_REFUSED = answers.error(
    401,
    "invalid_token",
    "the token of this base URL is not, or no longer, valid: use the URL of the current run",
)
_HOST_REFUSED = answers.error(421, "host_refused", "wanted a loopback name in the Host header")
_ORIGIN_REFUSED = answers.error(
    403, "origin_refused", "requests from web pages and other proxies are refused"
)
_UPGRADE_REFUSED = answers.error(
    426, "upgrade_refused", "only HTTP/1.1 is spoken here", headers=b"upgrade: HTTP/1.1\r\n"
)

"""Who comes in and who does not, at a real listener; nothing that is refused reaches the provider."""

import json
from collections.abc import Callable

import pytest
from tests.gateway.mitm.gateway import Lane
from tests.gateway.mitm.provider import COMPLETION, always, sized

from kt_ledger import journal

MakeLane = Callable[..., Lane]


@pytest.fixture
def lane(make_lane: MakeLane) -> Lane:
    return make_lane(always(sized(COMPLETION)))


POST = b"POST {path} HTTP/1.1\r\nHost: {host}\r\n"
SMUGGLING = {
    "both framings": POST + b"Content-Length: 3\r\n{chunked}\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "length list": POST + b"Content-Length: 3, 4\r\n\r\nabcd",
    "signed length": POST + b"Content-Length: +3\r\n\r\nabc",
    "hex length": POST + b"Content-Length: 0x3\r\n\r\nabc",
    "empty length": POST + b"Content-Length:\r\n\r\nabc",
    "space before colon": POST + b"Content-Length : 3\r\n\r\nabc",
    "folded line": POST + b"X: a\r\n b\r\nContent-Length: 3\r\n\r\nabc",
    "bare LF": b"POST {path} HTTP/1.1\nHost: {host}\nContent-Length: 3\n\nabc",
    "one bare LF": POST + b"X: a\nY: b\r\n\r\n",
    "bare CR": POST + b"X: a\rContent-Length: 3\r\n\r\n",
    "NUL": POST + b"X: a\0b\r\n\r\n",
    "no colon": POST + b"X\r\n\r\n",
    "empty name": POST + b": x\r\n\r\n",
    "two transfer codings": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
    "other coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n",
    "vertical tab coding": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n",
    "chunked in 1.0": b"POST {path} HTTP/1.0\r\nHost: {host}\r\n{chunked}\r\n0\r\n\r\n",
    "bad chunk size": POST + b"{chunked}\r\n-1\r\nabc\r\n",
    "huge chunk size": POST + b"{chunked}\r\nffffffffffffffffff\r\n",
    "underscore chunk size": POST + b"{chunked}\r\n1_0\r\n",
    "long chunk": POST + b"{chunked}\r\n3\r\nabcd\r\n0\r\n\r\n",
    "LF after chunk size": POST + b"{chunked}\r\n3\nabc\r\n0\r\n\r\n",
    "oversized head": POST + b"X: " + b"a" * 70_000 + b"\r\n\r\n",
    "absolute form": b"POST http://{host}{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n",
    "connect": b"CONNECT example.com:443 HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "asterisk": b"OPTIONS * HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "no version": b"POST {path}\r\nHost: {host}\r\n\r\n",
    "other protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "http 2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no host": b"POST {path} HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    "two hosts": POST + b"Host: {host}\r\nContent-Length: 0\r\n\r\n",
    "fragment": b"POST {path}#x HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n",
    "two spaces": b"POST  {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("name", SMUGGLING)
def test_ambiguous_bytes_are_refused_and_the_connection_ends(lane: Lane, name: str) -> None:
    path = f"/{lane.token}/v1/chat/completions".encode()
    raw = SMUGGLING[name].replace(b"{path}", path).replace(b"{host}", f"127.0.0.1:{lane.port}".encode())
    raw = raw.replace(b"{chunked}", b"Transfer-Encoding: chunked\r\n")
    smuggled = lane.post(b"smuggled")

    data, how = lane.client(raw + smuggled).rest()

    assert data.split(b" ")[1] in (b"400", b"431", b"501", b"505")
    assert data.count(b"HTTP/1.1 ") == 1
    assert b"\r\nconnection: close\r\n" in data
    assert how == "end"
    assert lane.wait_records(journal.LOCAL)[0]["reason"] == "bad_request"
    assert lane.provider.log == []


@pytest.mark.parametrize(
    "host", [b"localhost:{port}", b"LOCALHOST:{port}", b"127.0.0.1", b"[::1]:{port}", b"localhost"]
)
def test_loopback_names_are_hosts_of_ours(lane: Lane, host: bytes) -> None:
    request = lane.post().replace(
        f"127.0.0.1:{lane.port}".encode(), host.replace(b"{port}", b"%d" % lane.port)
    )

    assert lane.client(request).answer()[1] == COMPLETION


@pytest.mark.parametrize(
    "host", [b"evil.example:{port}", b"localhost:1", b"127.0.0.1.evil:{port}", b"localhost:4000/#@x"]
)
def test_other_names_are_refused(lane: Lane, host: bytes) -> None:
    request = lane.post().replace(
        f"127.0.0.1:{lane.port}".encode(), host.replace(b"{port}", b"%d" % lane.port)
    )

    data, _ = lane.client(request).rest()

    assert data.startswith(b"HTTP/1.1 421 ")
    assert lane.wait_records(journal.LOCAL)[0]["reason"] == "refused_host"
    assert lane.provider.log == []


@pytest.mark.parametrize(
    "start", ["", "/wrong-token", "/wrong-token/deeper", "/{token}x", "/{token}%00", "/%74oken"]
)
def test_a_wrong_or_missing_token_is_a_401_or_404_with_nothing_forwarded(lane: Lane, start: str) -> None:
    request = lane.post(start=start.replace("{token}", lane.token) or "/").replace(b"POST //", b"POST /")

    head, _ = lane.client(request).answer()

    assert head.split(b" ")[1] in (b"401", b"404", b"400")
    assert lane.provider.log == []
    assert lane.records(journal.OPEN) == []


def test_a_stale_token_leaves_a_row_without_the_token(lane: Lane) -> None:
    head, body = lane.client(lane.post(start="/old-token")).answer()

    assert head.startswith(b"HTTP/1.1 401 ")
    assert json.loads(body)["error"]["code"] == "invalid_token"
    local = lane.wait_records(journal.LOCAL)[0]
    assert (local["reason"], local["path"], local["run"]) == ("refused_token", "/v1/chat/completions", None)
    assert "old-token" not in json.dumps(local)


def test_replaced_grants_hold_from_the_next_request_on_an_open_connection(lane: Lane) -> None:
    client = lane.client(lane.post())
    client.answer()

    lane.put(grants=[{"run_id": "r-2", "token": "another"}])
    client.send(lane.post() + lane.post(start="/another"))

    assert client.answer()[0].startswith(b"HTTP/1.1 401 ")
    assert client.answer()[1] == COMPLETION
    assert [close["run"] for close in lane.wait_records(journal.CLOSE, 2)] == [
        f"run-of-{lane.instance}",
        "r-2",
    ]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/chat/completions", b"403", "instance_stopped"),
        ("/v1/responses", b"429", "insufficient_quota"),
        ("/v1/messages", b"403", None),
    ],
)
def test_a_stopped_instance_refuses_for_good(lane: Lane, path: str, status: bytes, code: str | None) -> None:
    lane.put(grants=[])

    head, body = lane.client(lane.post(path=path)).answer()

    assert head.split(b" ")[1] == status
    assert b"\r\nx-should-retry: false\r\n" in head
    assert b"retry-after" not in head.lower()
    assert json.loads(body)["error"].get("code") == code
    assert lane.wait_records(journal.LOCAL)[0]["reason"] == "instance_stopped"
    assert lane.provider.log == []


@pytest.mark.parametrize(
    "carrier", [b"Authorization: Bearer ", b"authorization: bearer ", b"x-api-key: ", b"api-key: "]
)
def test_the_placeholder_key_is_the_token_where_we_put_the_key_in(
    make_lane: MakeLane, carrier: bytes
) -> None:
    lane = make_lane(always(sized(COMPLETION)), upstream_api_key="sk-real")
    request = lane.post(start="/v1", path="/chat/completions", more=carrier + lane.token.encode() + b"\r\n")

    assert lane.client(request).answer()[1] == COMPLETION
    assert lane.provider.log[0].values(b"authorization") == [b"Bearer sk-real"]
    assert lane.provider.log[0].values(b"x-api-key") + lane.provider.log[0].values(b"api-key") == []


def test_a_bearer_token_is_none_of_ours_where_agents_bring_their_own_key(lane: Lane) -> None:
    more = f"Authorization: Bearer {lane.token}\r\n".encode()

    head, _ = lane.client(lane.post(start="/v1", path="/chat/completions", more=more)).answer()

    assert head.startswith(b"HTTP/1.1 401 ")
    assert lane.provider.log == []


def test_without_a_token_browsers_and_proxies_are_refused(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)), listener_auth="none")
    plain = lane.post(start="/v1", path="/chat/completions")

    assert lane.client(plain).answer()[1] == COMPLETION
    for header in (b"Origin: http://evil.example\r\n", b"X-Forwarded-For: 1.2.3.4\r\n", b"Via: 1.1 x\r\n"):
        data, _ = lane.client(plain.replace(b"Content-Length", header + b"Content-Length")).rest()
        assert data.startswith(b"HTTP/1.1 403 ")
    assert len(lane.provider.log) == 1


@pytest.mark.parametrize(
    "path", ["", "/", "/props", "/api/v1/models", "/api/tags", "/version", "//v1/models", "/v1x/models"]
)
def test_paths_outside_of_the_base_are_answered_here_and_counted(lane: Lane, path: str) -> None:
    head, _ = lane.client(lane.get(path)).answer()

    lane.gateway.ask("POST", "/v1/flush")

    assert head.startswith(b"HTTP/1.1 404 ")
    assert lane.provider.log == []
    note = lane.wait_records(journal.NOTE)[0]
    assert (note["kind"], note["count"], note["run"]) == ("probe", 1, f"run-of-{lane.instance}")
    assert lane.records(journal.LOCAL) + lane.records(journal.OPEN) == []


@pytest.mark.parametrize(
    "path",
    [
        "/v1/../admin",
        "/v1/%2e%2e/admin",
        "/v1/.%2E/admin",
        "/v1/%252e%252e/admin",
        "/v1/..%2fadmin",
        "/v1/x%2f..%2f..%2fadmin",
        "/v1\\..\\admin",
        "/v1/..;/admin",
        "/./v1/models",
        "/../v1/models",
        "/v1/a%0d%0ab",
        "/v1/a%00b",
    ],
)
def test_tricks_with_paths_do_not_get_out_of_the_base(lane: Lane, path: str) -> None:
    data, _ = lane.client(lane.get(path)).rest()

    assert data.startswith(b"HTTP/1.1 400 ")
    assert lane.provider.log == []


@pytest.mark.parametrize("path", ["/v1//models", "/v1/models%20x", "/v1/a/b?x=../..&y=%2e%2e"])
def test_odd_paths_inside_the_base_pass_as_they_are(lane: Lane, path: str) -> None:
    lane.client(lane.get(path)).answer()

    assert lane.provider.log[0].path == path.encode()


@pytest.mark.parametrize(
    ("prefix", "asked", "reached"),
    [
        ("/v1", "/v1/chat/completions", "/v1/chat/completions"),
        ("/v1", "/chat/completions", "/v1/chat/completions"),
        ("/api/v1", "/api/v1/chat/completions", "/api/v1/chat/completions"),
        ("/api/v1", "/v1/chat/completions", "/api/v1/chat/completions"),
        ("/api/v1", "/chat/completions", "/api/v1/chat/completions"),
        ("", "/v1/chat/completions", "/v1/chat/completions"),
        ("/openai", "/openai/chat/completions", "/openai/chat/completions"),
    ],
)
def test_the_base_is_understood_with_and_without_v1(
    make_lane: MakeLane, prefix: str, asked: str, reached: str
) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    lane.put(upstream=lane.provider.url.removesuffix("/v1") + prefix)

    lane.client(lane.post(path=asked)).answer()

    assert lane.provider.log[0].path == reached.encode()


def test_the_probe_is_answered_here_and_leaves_no_trace(lane: Lane) -> None:
    head, _ = lane.client(lane.get("/.kt/probe")).answer()

    lane.gateway.ask("POST", "/v1/flush")

    assert head.startswith(b"HTTP/1.1 204 ")
    assert lane.provider.log == []
    assert not any(lane.records(type_) for type_ in (journal.OPEN, journal.LOCAL, journal.NOTE))


def test_a_websocket_is_refused_with_426_at_once(lane: Lane) -> None:
    more = (
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n"
    )
    client = lane.client(lane.get("/v1/responses", more=more))

    assert client.answer()[0].startswith(b"HTTP/1.1 426 ")
    client.send(lane.post())
    assert client.answer()[1] == COMPLETION


def test_an_offer_of_http_2_is_ignored(lane: Lane) -> None:
    more = (
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"
    )

    assert lane.client(lane.post(more=more)).answer()[1] == COMPLETION
    assert lane.provider.log[0].values(b"upgrade") + lane.provider.log[0].values(b"http2-settings") == []


def test_a_refused_body_is_read_away_and_the_connection_goes_on(lane: Lane) -> None:
    client = lane.client(lane.post(b"x" * 100_000, start="/old") + lane.post())

    assert client.answer()[0].startswith(b"HTTP/1.1 401 ")
    assert client.answer()[1] == COMPLETION


def test_hammering_strangers_are_counted_and_not_listed_one_by_one(lane: Lane) -> None:
    client = lane.client()
    for _ in range(300):
        client.send(lane.post(start="/old"))
        client.answer()

    lane.gateway.ask("POST", "/v1/flush")

    rows, notes = lane.records(journal.LOCAL), lane.records(journal.NOTE)
    assert len(rows) + sum(note["count"] for note in notes) == 300
    assert len(rows) < 300

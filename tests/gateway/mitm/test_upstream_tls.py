"""Providers over TLS: verified, with a name, reopened between exchanges."""

import contextlib
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.gateway.mitm.gateway import Gateway, Lane
from tests.gateway.mitm.provider import COMPLETION, Asked, Wire, always, sized

from kt_ledger import journal

WITHOUT_TLS = [b"220 who is there\r\n", b""] if "KT_CHAOS" in os.environ else [b"220 who is there\r\n"]
"""What is said instead; one that says nothing is given up after the ten seconds of a connection that is made."""

MakeLane = Callable[..., Lane]


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an authority (ca.pem) and a certificate for localhost (server.pem, server.key)."""
    folder = tmp_path_factory.mktemp("authority")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30")
    openssl(
        folder, "req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority"
    )
    openssl(
        folder, "req", *curve[:-2], "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost"
    )
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30", "-extfile", "names")
    openssl(folder, "x509", "-req", "-in", "server.csr", *signing, "-out", "server.pem")
    return folder


@pytest.fixture(scope="module")
def trusting(authority: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that knows the authority."""
    state = tmp_path_factory.mktemp("trusting") / "state"
    running = Gateway(state, SSL_CERT_FILE=str(authority / "ca.pem")).started()
    yield running
    running.close()


@pytest.fixture
def server_context(authority: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    context.set_alpn_protocols(["http/1.1"])
    return context


def test_a_provider_over_tls_is_reached_and_its_connection_used_again(
    trusting: Gateway, make_lane: MakeLane, server_context: ssl.SSLContext
) -> None:
    names: list[str | None] = []
    server_context.sni_callback = lambda _, name, __: names.append(name)
    lane = make_lane(always(sized(COMPLETION)), on=trusting, tls=server_context)
    client = lane.client(lane.post() + lane.post())

    assert [client.answer()[1], client.answer()[1]] == [COMPLETION, COMPLETION]

    assert names == ["localhost"]
    assert [asked.connection for asked in lane.provider.log] == [1, 1]
    assert lane.provider.log[0].values(b"host") == [f"localhost:{lane.provider.port}".encode()]


def test_a_tls_connection_that_was_closed_is_opened_anew(
    trusting: Gateway, make_lane: MakeLane, server_context: ssl.SSLContext
) -> None:
    def once(_: Asked, wire: Wire) -> bool:
        wire.send(sized(COMPLETION))
        return False

    lane = make_lane(once, on=trusting, tls=server_context)
    client = lane.client()

    for _ in range(3):
        client.send(lane.post())
        assert client.answer()[1] == COMPLETION

    assert [asked.connection for asked in lane.provider.log] == [1, 2, 3]


def test_an_authority_that_nobody_vouches_for_is_refused(
    make_lane: MakeLane, server_context: ssl.SSLContext
) -> None:
    lane = make_lane(always(sized(COMPLETION)), tls=server_context)

    head, _body = lane.client(lane.post()).answer()

    assert head.startswith(b"HTTP/1.1 502 ")
    assert lane.provider.log == []
    close = lane.wait_records(journal.CLOSE)[0]
    assert (close["sent"], close["reason"]) == ("no", "upstream_unreachable")


def test_a_certificate_for_another_name_is_refused(
    trusting: Gateway, make_lane: MakeLane, server_context: ssl.SSLContext
) -> None:
    lane = make_lane(
        always(sized(COMPLETION)),
        on=trusting,
        tls=server_context,
    )
    lane.put(upstream=lane.upstream.replace("localhost", "127.0.0.1"))

    assert lane.client(lane.post()).answer()[0].startswith(b"HTTP/1.1 502 ")
    assert lane.provider.log == []


@pytest.mark.chaos
@pytest.mark.parametrize("says", WITHOUT_TLS)
def test_a_provider_that_speaks_no_tls_is_unreachable(make_lane: MakeLane, says: bytes) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    with socket.create_server(("127.0.0.1", 0)) as server, contextlib.ExitStack() as taken:

        def greet() -> None:
            taken.enter_context(server.accept()[0]).sendall(says)

        greeting = threading.Thread(target=greet)
        greeting.start()
        lane.put(upstream=f"https://localhost:{server.getsockname()[1]}/v1")
        head = lane.client(lane.post()).answer()[0]
        greeting.join()

    assert head.startswith(b"HTTP/1.1 502 ")
    assert lane.wait_records(journal.CLOSE)[0]["sent"] == "no"


def test_an_upstream_that_became_tls_is_refused_on_an_old_connection_only(make_lane: MakeLane) -> None:
    lane = make_lane(always(sized(COMPLETION)))
    client = lane.client(lane.post())
    client.answer()

    lane.put(upstream="https://localhost:1/v1")
    client.send(lane.post())

    assert client.answer()[0].startswith(b"HTTP/1.1 502 ")

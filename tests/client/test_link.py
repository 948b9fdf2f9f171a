import os
from pathlib import Path
from typing import Any

import pytest

from kt_client.errors import EngineAway, KtError
from kt_client.link import Link


def test_nobody_at_the_socket_is_not_an_error_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(EngineAway):
        Link(tmp_path / "engine.sock").ask("GET", "/v1/engine")


def test_a_stale_socket_counts_as_away(tmp_path: Path, script: Any, kt: Any) -> None:
    script.close()

    assert not Link(kt.state / "engine.sock").answers()


@pytest.mark.parametrize(
    "pieces",
    [
        [b'HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{"a":1}'],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n", b"\r\n", b'{"a"', b":1}"],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b'3\r\n{"a\r\n4;x=y\r\n":1}\r\n0\r\n\r\n'],
        [b'HTTP/1.1 200 OK\r\n\r\n{"a":1}'],
    ],
    ids=["sized", "sized in pieces", "chunked", "by close"],
)
def test_every_framing_is_read(script: Any, kt: Any, pieces: list[bytes]) -> None:
    script.answer(*pieces)

    assert {"a": 1} == Link(kt.state / "engine.sock").ask("GET", "/v1/engine")


def test_a_body_goes_out_as_json_with_its_length(script: Any, kt: Any) -> None:
    script.answer_json(200, {})

    Link(kt.state / "engine.sock").ask("POST", "/v1/agents", body={"name": "ä\udcff"})

    head, _, body = script.heads[0].partition(b"\r\n\r\n")
    assert b"content-length: %d" % len(body) in head
    assert b'{"name": "\\u00e4\\udcff"}' == body


def test_a_refusal_carries_its_exit_code(script: Any, kt: Any) -> None:
    script.answer_json(409, {"error": {"code": "wrong_state", "exit_code": 4, "message": "got running"}})

    with pytest.raises(KtError, match="got running") as caught:
        Link(kt.state / "engine.sock").ask("GET", "/v1/agents")

    assert (caught.value.exit_code, caught.value.code) == (4, "wrong_state")


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        [b"HTTP/1.1 200 OK\r\n"],
        [b"HTTP/1.1 200 OK\r\ncontent-length: 70\r\n\r\n{"],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\n{"],
        [b"nonsense\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nno!"],
    ],
)
def test_an_answer_that_is_cut_or_garbled_is_said_so(script: Any, kt: Any, pieces: list[bytes]) -> None:
    script.answer(*pieces)

    with pytest.raises(KtError, match="went away in mid-answer") as caught:
        Link(kt.state / "engine.sock").ask("GET", "/v1/agents")

    assert 1 == caught.value.exit_code


def test_an_engine_that_hangs_is_not_waited_for_for_ever(script: Any, kt: Any) -> None:
    with pytest.raises(KtError, match="did not answer in time"):
        Link(kt.state / "engine.sock").ask("GET", "/v1/agents", timeout_s=0.05)


def test_lines_come_whole_however_they_are_cut(script: Any, kt: Any) -> None:
    script.answer(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        b'4\r\n{"a"\r\n',
        b'8\r\n:1}\n{"b"\r\n',
        b"3\r\n:2}\r\n0\r\n\r\n",
    )

    assert [{"a": 1}, {"b": 2}] == list(Link(kt.state / "engine.sock").lines("/v1/agents/x/logs"))


def test_a_path_longer_than_a_socket_address_is_reached(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)

    with pytest.raises(EngineAway):
        Link(deep / "engine.sock").ask("GET", "/v1/engine")


def test_a_connection_is_upgraded_with_what_came_behind_the_head(script: Any, kt: Any) -> None:
    script.answer(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: raw\r\nx-more: 1\r\n\r\nfirst ", b"words")

    connection, headers, first = Link(kt.state / "engine.sock").upgrade("/v1/x", protocol="raw")
    with connection:
        while data := connection.recv(100):
            first += data

    assert (b"first words", "1") == (first, headers["x-more"])
    assert b"connection: upgrade\r\nupgrade: raw\r\n" in script.heads[0]


def test_an_upgrade_that_is_refused_is_the_refusal(script: Any, kt: Any) -> None:
    script.answer_json(409, {"error": {"code": "x", "exit_code": 4, "message": "got stopped"}})

    with pytest.raises(KtError, match="got stopped"):
        Link(kt.state / "engine.sock").upgrade("/v1/x", protocol="raw")


def test_a_follower_whose_reader_has_left_waits_no_longer(script: Any, kt: Any) -> None:
    reading, writing = os.pipe()
    script.answer(b'HTTP/1.1 200 OK\r\n\r\n{"a":1}\n', b"<hang>")
    lines = Link(kt.state / "engine.sock").lines("/v1/x", reader=writing)

    first = next(lines)
    os.close(reading)

    assert {"a": 1} == first
    with pytest.raises(BrokenPipeError):
        next(lines)
    os.close(writing)

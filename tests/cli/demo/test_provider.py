import http.client
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kt_cli.demo import provider_log, wire_case
from kt_cli.demo.provider_process import ProviderFailed, ProviderProcess

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
CASES = {case.name: case for case in wire_case.load_all(FIXTURES / "wire")}


def ask(provider: ProviderProcess, case: str, **more: object) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=20)
    connection.request("POST", "/v1/chat/completions", json.dumps({"model": case, **more}))
    return connection.getresponse()


@pytest.mark.parametrize("name", sorted(name for name, case in CASES.items() if case.response.end == "clean"))
def test_every_clean_case_arrives_byte_for_byte(shared_provider: ProviderProcess, name: str) -> None:
    case = CASES[name]
    connection = http.client.HTTPConnection("127.0.0.1", shared_provider.port, timeout=20)

    connection.request(
        "POST",
        "/v1/chat/completions",
        json.dumps({"stream_options": {"include_usage": True}}),
        {"x-kt-case": name},
    )
    answer = connection.getresponse()

    assert case.response.status == answer.status
    assert b"".join(case.body_pieces()) == answer.read()
    assert case.response.encoding.removesuffix("-raw") == (answer.getheader("content-encoding") or "")


def test_the_usage_event_is_sent_only_where_it_was_asked_for(provider: ProviderProcess) -> None:
    case = CASES["demo/story"]

    direct = ask(provider, "demo/story", stream=True).read()
    metered = ask(provider, "demo/story", stream=True, stream_options={"include_usage": True}).read()

    provider.stop()
    assert case.expect.agent_body == direct
    assert case.response.body == metered
    assert [
        (False, None),
        (True, 1200),
    ] == [(call.include_usage, call.input_tokens) for call in provider.calls()]


def test_what_follows_the_mark_in_a_model_tells_calls_apart(provider: ProviderProcess) -> None:
    ask(provider, "answer@7").read()

    (call,) = provider.calls()
    assert (call.case, call.model) == ("demo/answer", "answer@7")


def test_a_reset_reaches_the_client_as_a_reset(provider: ProviderProcess) -> None:
    with socket.create_connection(("127.0.0.1", provider.port), timeout=20) as client:
        body = b'{"model": "demo/cut"}'
        client.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b"
            % (len(body), body)
        )
        received = b""
        with pytest.raises(ConnectionResetError):
            while data := client.recv(65536):
                received += data
    provider.stop()

    assert received.endswith(b"\r\n") and b"[DONE]" not in received
    (call,) = provider.calls()
    assert call.usage is None


def test_one_connection_serves_many_calls(provider: ProviderProcess) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=20)

    for number in range(3):
        connection.request("POST", "/v1/chat/completions", json.dumps({"model": f"demo/answer@{number}"}))
        connection.getresponse().read()

    assert ["demo/answer@0", "demo/answer@1", "demo/answer@2"] == [call.model for call in provider.calls()]


def test_chunked_requests_and_expect_100_are_read(provider: ProviderProcess) -> None:
    with socket.create_connection(("127.0.0.1", provider.port), timeout=20) as client:
        client.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n"
            b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        )
        first = client.recv(100)
        client.sendall(b'16\r\n{"model":"demo/answer"\r\n1\r\n}\r\n0\r\n\r\n')
        rest = b""
        while data := client.recv(65536):
            rest += data

    assert first.startswith(b"HTTP/1.1 100 ")
    assert CASES["demo/answer"].response.body in rest
    assert [23] == [call.request_bytes for call in provider.calls()]


@pytest.mark.parametrize(
    "garbage", [b"\x16\x03\x01\r\n\r\n", b"GET /\r\n\r\n", b"POST / HTTP/1.1\r\nno colon\r\n\r\n"]
)
def test_what_is_no_request_gets_a_400_and_no_call(provider: ProviderProcess, garbage: bytes) -> None:
    with socket.create_connection(("127.0.0.1", provider.port), timeout=20) as client:
        client.sendall(garbage)
        answer = client.recv(65536)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert [] == provider.calls()


def test_an_unknown_model_is_a_404_that_names_the_cases(provider: ProviderProcess) -> None:
    answer = ask(provider, "no-such-model")

    assert 404 == answer.status
    assert "demo/story" in json.load(answer)["error"]["message"]


def test_a_call_is_logged_before_its_answer_leaves(provider: ProviderProcess) -> None:
    answer = ask(provider, "demo/story", stream=True)  # the head is here, the body is not

    (call,) = provider.calls()

    assert "demo/story" == call.model
    answer.read()


def test_a_client_that_leaves_got_no_usage(provider: ProviderProcess, tmp_path: Path) -> None:
    answer = ask(provider, "demo/story", stream=True, stream_options={"include_usage": True})
    answer.read(10)
    answer.close()
    provider.stop()

    (call,) = provider.calls()
    assert (call.complete, call.usage) == (False, None)


def test_it_ends_with_whoever_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kt_cli.demo.provider", "--fixtures", str(FIXTURES)]
    command += ["--log", str(tmp_path / "log"), "--until-eof"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    process.stdout.readline()

    process.stdin.close()

    assert 0 == process.wait(20)
    process.stdout.close()


def test_bad_fixtures_are_named(tmp_path: Path) -> None:
    bad = tmp_path / "wire" / "api" / "case"
    bad.mkdir(parents=True)
    (bad / "case.toml").write_text("[respons]\n")

    with pytest.raises(ProviderFailed, match=r"case\.toml"):
        ProviderProcess(tmp_path, tmp_path / "log")


def test_a_torn_last_line_of_the_log_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with provider_log.ProviderLog(path) as log:
        log.write(
            event="received",
            id="a",
            case="c",
            method="POST",
            path="/",
            model="m",
            bytes=1,
            stream=False,
            include_usage=False,
        )
    with path.open("ab") as file:
        file.write(b'{"event": "rec')

    assert ["a"] == [call.id for call in provider_log.read(path)]

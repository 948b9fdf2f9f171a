import random
from pathlib import Path

import pytest

from kt_manifest.contract.snapshot import Ready
from kt_manifest.launch import readiness
from kt_manifest.launch.executable import ExecutableMissing
from kt_manifest.launch.readiness import LineMatcher, ProbeUnresolved, StatusLine
from kt_manifest.line_pattern import LinePattern

SEED = 20
OUTPUT = "starting…\r\nnot yet\nListening on é:80\r\nmore\n".encode()
HERE = Path("/")


def _cuts(data: bytes) -> list[list[bytes]]:
    dice, at, cut = random.Random(SEED), 0, []
    while at < len(data):
        size = dice.randint(1, 9)
        cut.append(data[at : at + size])
        at += size
    by = [[data[i : i + size] for i in range(0, len(data), size)] for size in (1, 7)]
    return [[data], *by, cut]


@pytest.mark.parametrize("way", range(4))
def test_a_line_is_found_however_the_output_is_cut(way: int) -> None:
    matcher = LineMatcher(LinePattern("^Listening on é:[0-9]+$"))
    before, _, rest = OUTPUT.partition(b"80\r\n")

    early = [matcher.feed(chunk) for chunk in _cuts(before)[way]]
    at_last = [matcher.feed(chunk) for chunk in _cuts(b"80\r\n" + rest)[way]]

    assert not any(early)
    assert at_last[-1]


@pytest.mark.parametrize("way", range(4))
def test_two_lines_are_never_one(way: int) -> None:
    matcher = LineMatcher(LinePattern("yetListening|yet.Listening"))

    assert not any(matcher.feed(chunk) for chunk in _cuts(OUTPUT)[way])


def test_a_line_without_its_end_is_not_there_yet() -> None:
    matcher = LineMatcher(LinePattern("ready"))

    assert not matcher.feed(b"ready")
    assert matcher.feed(b"\n")
    assert matcher.feed(b"anything")


def test_of_an_endless_line_only_the_beginning_is_kept_and_looked_at() -> None:
    matcher = LineMatcher(LinePattern("x"))

    for _ in range(200):
        assert not matcher.feed(b"a" * 1000)
    assert readiness.LONGEST_LINE_BYTES == len(matcher._line)
    assert not matcher.feed(b"x\n")
    assert matcher.feed(b"x\n")


def test_bytes_that_are_no_text_hide_nothing() -> None:
    assert LineMatcher(LinePattern("ready$")).feed(b"\xff\xfe ready\n")


@pytest.mark.parametrize(
    ("answer", "ready"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", True),
        (b"HTTP/1.0 302 Found\r\n\r\n", True),
        (b"HTTP/1.1 204\r\n\r\n", True),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", False),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", False),
        (b"SSH-2.0-OpenSSH\r\n", False),
        (b"HTTP/1.1 2000 x\r\n", False),
        (b"\r\n", False),
        (b"x" * 2000, False),
    ],
)
@pytest.mark.parametrize("way", range(4))
def test_an_answer_is_judged_by_its_first_line_however_it_is_cut(
    answer: bytes, ready: bool, way: int
) -> None:
    status = StatusLine()

    for chunk in _cuts(answer)[way]:
        status.feed(chunk)

    assert ready is status.ready


def test_an_answer_that_ends_before_its_first_line_is_none() -> None:
    status = StatusLine()

    assert status.feed(b"HTTP/1.1 2") is None
    assert status.feed(b"") is False


def test_a_line_is_waited_for_on_its_stream() -> None:
    probe = readiness.probe(Ready(line="up", stream="stderr", deadline_s=3), {}, HERE)

    assert ("line", "up", "stderr", 3) == (probe.way, probe.line, probe.stream, probe.deadline_s)


def test_a_port_is_a_number_or_a_variable_of_the_agent() -> None:
    fixed = readiness.probe(Ready(port="8080"), {}, HERE)
    named = readiness.probe(Ready(port="${PORT}"), {"PORT": "9090"}, HERE)

    assert (8080, 9090) == (fixed.port, named.port)
    assert ("127.0.0.1", "::1") == fixed.hosts


@pytest.mark.parametrize("value", [None, "", "0", "65536", "http", "-1", "٣"])
def test_a_variable_that_is_no_port_starts_nothing(value: str | None) -> None:
    env = {} if value is None else {"PORT": value}

    with pytest.raises(ProbeUnresolved, match="PORT"):
        readiness.probe(Ready(port="${PORT}"), env, HERE)


def test_an_address_is_taken_apart_with_its_variables() -> None:
    probe = readiness.probe(Ready(http="http://[::1]:${PORT}/health?full=1"), {"PORT": "81"}, HERE)

    assert (("::1",), 81, "/health?full=1") == (probe.hosts, probe.port, probe.path)
    assert probe.request().startswith(b"GET /health?full=1 HTTP/1.1\r\nhost: [::1]:81\r\n")


@pytest.mark.parametrize("value", ["81@evil.example:80/", "x", "81/\r\nhost: evil", "0"])
def test_a_variable_cannot_lead_elsewhere(value: str) -> None:
    with pytest.raises(ProbeUnresolved) as refused:
        readiness.probe(Ready(http="http://127.0.0.1:${PORT}/x"), {"PORT": value}, HERE)

    assert "evil" not in str(refused.value)


def test_a_command_is_looked_up_as_the_agent_would(tmp_path: Path) -> None:
    program = tmp_path / "check"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    probe = readiness.probe(Ready(command=("check", "-q")), {"PATH": str(tmp_path)}, HERE)

    assert (str(program), "-q") == probe.argv
    with pytest.raises(ExecutableMissing):
        readiness.probe(Ready(command=("check",)), {"PATH": "/nowhere"}, HERE)

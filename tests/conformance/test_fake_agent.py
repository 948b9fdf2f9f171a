"""The fake agent does what its flags say."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.conftest import FAKE

from kt_conformance import processes
from kt_conformance.provider import Provider
from kt_conformance.provider_call import totals


def run(*flags: str, stdin: str = "", env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, FAKE, *flags]
    variables = {"PATH": os.environ["PATH"]} | (env or {})
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=30, env=variables, check=False
    )


def reports(output: str) -> list[dict[str, Any]]:
    return [json.loads(line.split(" ", 1)[1]) for line in output.splitlines() if line.startswith("KTESIO")]


@pytest.fixture
def living() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def begin(living: list[subprocess.Popen[str]], *flags: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-u", FAKE, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    living.append(process)
    return process


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (["--exit-fast", "7"], 7),
        (["--linger-ms", "50"], 0),
        (["--crash-after-ms", "50"], 1),
        (["--crash-after-ms", "50", "--crash-with", "9"], 9),
        (["--end-when-done"], 0),
        (["--unknown", "flag", "--exit-fast", "3"], 3),
    ],
)
def test_it_ends_as_it_is_told(flags: list[str], code: int) -> None:
    assert code == run(*flags).returncode


def test_crashes_are_counted_over_its_lives(tmp_path: Path) -> None:
    flags = ["--crash-after-ms", "20", "--crash-times", "2", "--crash-state", str(tmp_path / "n")]

    codes = [run(*flags, "--linger-ms", "500").returncode for _ in range(3)]

    assert [1, 1, 0] == codes


def test_it_shows_what_it_was_given(tmp_path: Path) -> None:
    run("--dump", str(tmp_path / "d"), "--drop-env", "A", "--exit-fast", "0", env={"A": "1", "B": "2"})

    lines = (tmp_path / "d").read_text().splitlines()
    assert "arg=--drop-env" in lines
    assert "env=B=2" in lines
    assert "env=A=1" not in lines


def test_it_marks_its_life(tmp_path: Path, living: list[subprocess.Popen[str]]) -> None:
    process = begin(living, "--marker", str(tmp_path / "pid"), "--heartbeat-ms", "10")

    assert "beat 0" == line_of(process)
    assert "beat 1" == line_of(process)
    assert f"{process.pid}\n" == (tmp_path / "pid").read_text()


def test_its_beats_go_where_they_are_wanted(tmp_path: Path, living: list[subprocess.Popen[str]]) -> None:
    file = str(tmp_path / "beats")
    process = begin(living, "--heartbeat-ms", "5", "--heartbeat-file", file, "--heartbeat-stderr-ms", "5")
    assert process.stderr is not None

    assert "beat 0" == process.stderr.readline().strip()
    while line_of(process) != "beat 2":
        pass
    assert ["0", "1"] == Path(file).read_text().splitlines()[:2]


def test_it_has_a_child(living: list[subprocess.Popen[str]]) -> None:
    process = begin(living, "--spawn-child")

    pid = int(line_of(process).removeprefix("child-pid="))

    child = processes.read(pid)
    assert child is not None
    assert process.pid == child.parent
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(("flags", "ends"), [([], True), (["--ignore-term"], False)])
def test_it_ends_on_term_unless_it_ignores_that(
    living: list[subprocess.Popen[str]], flags: list[str], ends: bool
) -> None:
    process = begin(living, "--heartbeat-ms", "10", *flags)
    line_of(process)

    process.terminate()

    if ends:
        assert -signal.SIGTERM == process.wait(10)
    else:
        assert all(line_of(process).startswith("beat") for _ in range(5))


def test_it_reports_and_repeats() -> None:
    told = reports(run("--emit-usage", "3", "--replay-usage", "--end-when-done").stdout)

    assert [0, 1, 2, 0] == [report["sequence"] for report in told]
    assert {(10, 20)} == {(report["input_tokens"], report["output_tokens"]) for report in told}


def test_its_figures_are_chosen() -> None:
    flags = ["--usage-input-tokens", "5", "--usage-output-tokens", "6", "--usage-cached-tokens", "4"]

    told = run("--emit-usage", "2", *flags, "--final-usage-no-newline", "--end-when-done").stdout

    assert [
        {"sequence": n, "input_tokens": 5, "output_tokens": 6, "cached_tokens": 4} for n in (0, 1)
    ] == reports(told)
    assert told.endswith("}")


def test_it_asks_its_model() -> None:
    with Provider() as provider:
        env = {"URL": provider.url, "KEY": "sk-9", "WHICH": "some-model"}
        flags = ["--base-url-env", "URL", "--key-env", "KEY", "--model-env", "WHICH", "--report-calls"]

        done = run("--observed-calls", "2", "--stream-calls", "1", "--end-when-done", *flags, env=env)

        calls = provider.calls()
        told = reports(done.stdout)
        assert ["some-model"] * 3 == [call.model for call in calls]
        assert [False, False, True] == [call.stream for call in calls]
        assert {"sk-9"} == {call.key for call in calls}
        assert totals(calls) == (
            sum(report["input_tokens"] for report in told),
            sum(report["output_tokens"] for report in told),
        )
        assert 3 == done.stdout.count("model: The kit's provider says hello.")


def test_it_asks_where_and_as_whom_it_is_told() -> None:
    with Provider() as provider:
        run(
            "--observed-calls",
            "1",
            "--base-url",
            provider.url,
            "--auth-header",
            "Bearer x",
            "--model",
            "y",
            "--end-when-done",
        )

        assert [("x", "y")] == [(call.key, call.model) for call in provider.calls()]


def test_a_call_that_fails_is_told_and_survived() -> None:
    done = run("--observed-calls", "1", "--end-when-done")

    assert 0 == done.returncode
    assert "call failed: ValueError: no base URL in OPENAI_BASE_URL" in done.stderr


def test_it_reads_its_input() -> None:
    done = run("--echo-stdin", "--sniff-stdin-at-startup", "--linger-ms", "400", stdin="one\ntwo\n")

    assert ["stdin is a pipe", "stdin: one", "stdin: two"] == done.stdout.splitlines()


def test_it_asks_what_it_reads() -> None:
    with Provider() as provider:
        run("--ask-stdin", "--base-url", provider.url, "--linger-ms", "800", stdin="a word\n")

        assert ["a word"] == [json.loads(call.text)["messages"][0]["content"] for call in provider.calls()]


def test_it_goes_on_asking(living: list[subprocess.Popen[str]]) -> None:
    with Provider() as provider:
        begin(living, "--call-every-ms", "10", "--base-url", provider.url)
        ends_s = time.monotonic() + 20

        while len(provider.calls()) < 3:
            assert time.monotonic() < ends_s

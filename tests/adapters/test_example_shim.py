"""The shim that people copy: by itself, over a log that anything can happen to, and under a real engine."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.house import House

from kt_conformance import kit, report
from kt_ledger.sentinel import Usage, read_line
from kt_manifest.contract import shipped
from kt_manifest.contract.snapshot import Template

FOLDER = Path(__file__).resolve().parents[2] / "adapters" / "example-shim"
SHIM = FOLDER / "shim.py"
AGENT = FOLDER / "example_agent.py"
DEADLINE_S = 30


def _module() -> Any:
    spec = importlib.util.spec_from_file_location("example_shim", SHIM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


shim = _module()


def said(tokens: int | None, *, role: str = "assistant") -> str:
    usage = {"usage": {"prompt_tokens": tokens, "completion_tokens": 1}} if tokens is not None else {}
    return json.dumps({"role": role, **usage}) + "\n"


def numbers(reports: list[bytes]) -> list[tuple[int, int | None]]:
    """Return sequence and input of each report, as the engine reads it."""
    found = [read_line(line) for line in reports]
    assert all(isinstance(usage, Usage) for usage in found), reports
    return [(usage.sequence, usage.counts.input) for usage in found if isinstance(usage, Usage)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "transcript.jsonl"


def add(log: Path, text: str) -> None:
    with log.open("a") as stream:
        stream.write(text)


# -- the log ---------------------------------------------------------------------------------------------------


def test_the_number_is_the_calls_own_and_a_call_without_usage_is_not_reported(log: Path) -> None:
    followed = shim.Log(str(log), "run")

    add(log, said(5, role="user") + said(10) + said(None) + said(30))

    assert [(1, 10), (3, 30)] == numbers(followed.reports())
    assert [] == followed.reports()


@pytest.mark.parametrize(
    "usage",
    [
        '{"prompt_tokens": 1}',
        "null",
        "3",
        '{"prompt_tokens": -1, "completion_tokens": 1}',
        '{"prompt_tokens": 1.5, "completion_tokens": 1}',
        '{"prompt_tokens": true, "completion_tokens": 1}',
    ],
)
def test_half_of_the_truth_is_not_reported(log: Path, usage: str) -> None:
    followed = shim.Log(str(log), "run")

    add(log, f'{{"role": "assistant", "usage": {usage}}}\n' + said(20))

    assert [(2, 20)] == numbers(followed.reports())


def test_a_restarted_shim_gives_the_same_numbers_again(log: Path) -> None:
    add(log, said(1))
    first = shim.Log(str(log), "run")
    add(log, said(10) + said(20))
    before = first.reports()

    second = shim.Log(str(log), "run")
    add(log, said(30))

    assert [(1, 10), (2, 20)] == numbers(before)
    assert [*before, *second.reports()[2:]] == shim.Log(str(log), "run").reports()


def test_another_run_begins_where_the_log_ends(log: Path) -> None:
    first = shim.Log(str(log), "run")
    add(log, said(10))
    first.reports()

    second = shim.Log(str(log), "another")
    add(log, said(20))

    assert [(1, 20)] == numbers(second.reports())


def test_outside_of_a_run_every_start_begins_where_the_log_ends(log: Path) -> None:
    shim.Log(str(log), "")
    add(log, said(10))

    assert [] == shim.Log(str(log), "").reports()


def test_a_half_written_last_line_waits_for_its_end(log: Path) -> None:
    followed = shim.Log(str(log), "run")
    line = said(10)
    add(log, line[:9])

    assert [] == followed.reports()

    add(log, line[9:-1])

    assert [] == followed.reports()

    add(log, "\n")

    assert [(1, 10)] == numbers(followed.reports())


def test_the_last_line_of_all_needs_no_end(log: Path) -> None:
    followed = shim.Log(str(log), "run")
    add(log, said(10) + said(20).rstrip("\n"))

    assert [(1, 10), (2, 20)] == numbers(followed.reports(over=True))


@pytest.mark.parametrize("line", ["{", "[1]", "\xff", "3", '"text"', "[" * 100_000])
def test_a_line_that_cannot_be_read_takes_a_number(log: Path, line: str, capfd: Any) -> None:
    followed = shim.Log(str(log), "run")
    with log.open("ab") as stream:
        stream.write(line.encode("latin-1") + b"\n")
    add(log, said(20))

    assert [(2, 20)] == numbers(followed.reports())
    assert "may have been a call" in capfd.readouterr().err


def test_an_endless_line_is_not_kept(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shim, "LINE_LIMIT", 100_000)
    followed = shim.Log(str(log), "run")

    add(log, "x" * 300_000)
    followed.reports()

    assert len(followed.unfinished) < 100_000

    add(log, "y\n" + said(20))

    assert [(2, 20)] == numbers(followed.reports())


def test_a_log_that_is_renamed_away_is_read_to_its_end_first(log: Path) -> None:
    followed = shim.Log(str(log), "run")
    add(log, said(10))
    followed.reports()

    add(log, said(20))
    log.rename(log.with_suffix(".1"))
    with log.with_suffix(".1").open("a") as old:
        old.write(said(30).rstrip("\n"))  # the agent still had it open
    add(log, said(40))

    assert [(2, 20), (3, 30), (4, 40)] == numbers(followed.reports())
    assert [(4, 40)] == numbers(shim.Log(str(log), "run").reports())


def test_a_log_that_is_not_made_anew_yet_is_still_read(log: Path) -> None:
    followed = shim.Log(str(log), "run")
    add(log, said(10))
    followed.reports()

    log.rename(log.with_suffix(".1"))
    add(log.with_suffix(".1"), said(20))

    assert [(2, 20)] == numbers(followed.reports())


def test_a_log_that_is_cut_is_read_from_its_start_with_new_numbers(log: Path) -> None:
    followed = shim.Log(str(log), "run")
    add(log, said(10) + said(20) + '{"half')
    followed.reports()

    log.write_text(said(30))

    assert [(3, 30)] == numbers(followed.reports())
    assert [(3, 30)] == numbers(shim.Log(str(log), "run").reports())


def test_a_log_that_was_renamed_while_no_shim_ran_is_found_by_its_identity(log: Path) -> None:
    first = shim.Log(str(log), "run")
    add(log, said(10))
    first.reports()

    add(log, said(20))
    log.rename(log.with_suffix(".1"))
    add(log, said(30))

    assert [(1, 10), (2, 20), (3, 30)] == numbers(shim.Log(str(log), "run").reports())


@pytest.mark.parametrize("how", ["removed", "cut"])
def test_what_is_gone_while_no_shim_ran_leaves_a_gap_and_takes_no_number_twice(
    log: Path, how: str, capfd: Any
) -> None:
    first = shim.Log(str(log), "run")
    add(log, said(10) + said(20))
    first.reports()

    if how == "removed":
        log.rename(log.parent.parent / f"{log.parent.name}-away")
    log.write_text(said(30))

    assert [(4, 30)] == numbers(shim.Log(str(log), "run").reports())
    assert "part of the log is gone" in capfd.readouterr().err


def test_a_note_of_an_earlier_shim_that_cannot_be_read_is_none(log: Path) -> None:
    add(log, said(10))
    Path(f"{log}.shim").write_text('{"run": "run"')

    assert [] == shim.Log(str(log), "run").reports()


def test_the_folder_of_the_log_need_not_be_there_yet(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "transcript.jsonl"
    followed = shim.Log(str(log), "run")

    assert [] == followed.reports()

    add(log, said(10))

    assert [(1, 10)] == numbers(followed.reports())


def test_a_fifo_beside_the_log_is_not_waited_for(log: Path) -> None:
    first = shim.Log(str(log), "run")
    add(log, said(10))
    first.reports()
    log.rename(log.with_suffix(".1"))
    os.mkfifo(log.with_suffix(".0"))

    assert [(1, 10)] == numbers(shim.Log(str(log), "run").reports())


def test_a_note_that_cannot_be_written_stops_no_report(log: Path, capfd: Any) -> None:
    Path(f"{log}.shim.new").mkdir()
    followed = shim.Log(str(log), "run")

    add(log, said(10))

    assert [(1, 10)] == numbers(followed.reports())
    assert "cannot write" in capfd.readouterr().err


# -- the process -----------------------------------------------------------------------------------------------


def ran(log: Path, code: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(log, code), capture_output=True, timeout=DEADLINE_S, stdin=subprocess.DEVNULL, **options
    )


def command(log: Path, code: str) -> list[str]:
    return [sys.executable, str(SHIM), "--log", str(log), "--", sys.executable, "-u", "-c", code, str(log)]


CALLS = f"""
import os, signal, sys, time
def call(): open(sys.argv[1], "a").write({said(10)!r})
"""


@pytest.mark.parametrize("code", [0, 3, 255])
def test_it_ends_with_the_agents_code(log: Path, code: int) -> None:
    done = ran(log, f"{CALLS}call(); print('x'); sys.exit({code})")

    assert (code, b"x\n") == (done.returncode, done.stdout[:2])
    assert b'KTESIO_USAGE {"sequence": 1, "input_tokens": 10, "output_tokens": 1}\n' == done.stdout[2:]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_it_ends_by_the_agents_signal(log: Path, number: signal.Signals) -> None:
    done = ran(log, f"{CALLS}call(); os.kill(os.getpid(), {int(number)})")

    assert -number == done.returncode
    assert b'"sequence": 1' in done.stdout


@pytest.mark.parametrize("name", shim.PASSED_ON)
def test_signals_go_on_to_the_agent(log: Path, name: str) -> None:
    code = (
        f"{CALLS}signal.signal(signal.{name}, lambda *_: (call(), sys.exit(9)))\nprint('up')\nsignal.pause()"
    )
    with subprocess.Popen(command(log, code), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"up\n" == process.stdout.readline()

        process.send_signal(getattr(signal, name))
        rest, _ = process.communicate(timeout=DEADLINE_S)

    assert (9, 1) == (process.returncode, rest.count(b"KTESIO_USAGE"))


def test_an_ignored_signal_stays_ignored(log: Path) -> None:
    code = f"{CALLS}print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"

    done = subprocess.run(
        ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *command(log, code)],
        capture_output=True,
        timeout=DEADLINE_S,
    )

    assert b"True\n" == done.stdout


def test_a_program_that_is_not_there_or_not_one_is_the_shells_code(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")

    codes = [
        subprocess.run(
            [sys.executable, str(SHIM), "--log", str(tmp_path / "l"), "--", str(tmp_path / name)],
            capture_output=True,
            timeout=DEADLINE_S,
        )
        for name in ("none", "plain")
    ]

    assert [127, 126] == [done.returncode for done in codes]
    assert all(b"shim: cannot start" in done.stderr for done in codes)


def test_a_report_stands_between_the_agents_lines_and_the_rest_passes_as_it_is(log: Path) -> None:
    code = CALLS + (
        "sys.stdin.close()\nos.write(1, b'half of a ')\ncall(); time.sleep(0.4)\n"
        "os.write(1, b'line \\xff\\r\\nnext')\nos.write(2, b'err')"
    )

    done = ran(log, code)

    line = b'KTESIO_USAGE {"sequence": 1, "input_tokens": 10, "output_tokens": 1}\n'
    assert (b"half of a line \xff\r\n" + line + b"next", b"err") == (done.stdout, done.stderr)


def test_a_prompt_without_an_end_does_not_hold_reports_up(log: Path) -> None:
    code = f"{CALLS}os.write(1, b'> '); call(); sys.stdin.readline()"
    with subprocess.Popen(command(log, code), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None

        prompt, report = process.stdout.readline(), process.stdout.readline()

        process.communicate(b"\n", timeout=DEADLINE_S)
    assert (b"> \n", b"KTESIO_USAGE") == (prompt, report[:12])


def test_a_reader_that_leaves_ends_nothing_by_itself(log: Path) -> None:
    # The shim learns it when it reports, and the agent when it prints once more, which the pipe may still take.
    code = (
        f"{CALLS}print('up'); sys.stdin.readline()\n"
        "try:\n    while True: os.write(1, b'x')\nexcept BrokenPipeError: sys.exit(5)"
    )
    process = subprocess.Popen(command(log, code), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdin is not None
    assert b"up\n" == process.stdout.readline()
    process.stdout.close()

    add(log, said(10))
    House.until(lambda: '"reported": 1' in Path(f"{log}.shim").read_text(), "the call was seen")
    process.stdin.write(b"\n")
    process.stdin.close()

    assert 5 == process.wait(DEADLINE_S)


# -- under an engine -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    running = House(tmp_path_factory.mktemp("house") / "state").boot()
    yield running
    running.end()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH on which the shim and the agent have the names that the adapter gives them."""
    folder = tmp_path_factory.mktemp("bin")
    for name, source in (("kt-example-shim", SHIM), ("kt-example-agent", AGENT)):
        shutil.copy(source, folder / name)
        (folder / name).chmod(0o755)
    return f"{folder}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def tokens(house: House, name: str) -> tuple[int, int]:
    usage = house.entry(name)["usage"]
    return usage["cumulative_input_tokens"], usage["cumulative_output_tokens"]


def send(house: House, name: str, text: str) -> None:
    house.ask("POST", f"/v1/agents/{name}/send", {"text": text})


def register(house: House, name: str, start: Template | None = None) -> None:
    from dataclasses import replace

    adapter = shipped.named("example-shim").adapter
    adapter = replace(adapter, start=start) if start else adapter
    house.ask("POST", "/v1/agents", {"name": name, "adapter": adapter.to_json()})


def test_the_shipped_adapter_counts_right_over_a_restart_of_the_engine(house: House, path: str) -> None:
    register(house, "echo")
    house.start("echo", PATH=path)
    house.wait_for_state("echo", "running")

    send(house, "echo", "one two three")
    send(house, "echo", "offline is not counted")
    send(house, "echo", "four five")

    house.until(lambda: tokens(house, "echo") == (22, 5), lambda: f"both calls; {tokens(house, 'echo')}")

    house.stop_engine()
    house.boot()
    house.wait_for_state("echo", "running")
    send(house, "echo", "six")

    house.until(lambda: tokens(house, "echo") == (25, 6), lambda: f"one more; {tokens(house, 'echo')}")
    usage = house.entry("echo")["usage"]
    assert "all" != usage["usage_known"]  # the call without usage makes it a lower bound
    send(house, "echo", "exit 0")
    house.wait_for_state("echo", "stopped", "failed")

    # The next Run goes on in the same log.
    house.start("echo", PATH=path)
    house.wait_for_state("echo", "running")
    send(house, "echo", "seven")

    house.until(lambda: tokens(house, "echo") == (30, 7), lambda: f"the next Run; {tokens(house, 'echo')}")
    house.stop("echo")


AGAIN = """
import os, signal, subprocess, sys
shims = []
signal.signal(signal.SIGUSR1, lambda *_: shims[-1].kill())
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
for life in range(2):
    shims.append(subprocess.Popen(sys.argv[1:]))
    print("in front:", os.getpid(), flush=True)
    shims[-1].wait()
"""


def test_a_shim_that_is_killed_and_restarted_within_a_run_doubles_nothing(house: House, path: str) -> None:
    words = shipped.named("example-shim").adapter.start
    assert words is not None
    register(house, "again", Template(exec=sys.executable, args=("-c", AGAIN, words.exec, *words.args)))
    house.start("again", PATH=path)
    house.wait_for_state("again", "running")
    send(house, "again", "one two three")
    send(house, "again", "four five")
    house.until(lambda: tokens(house, "again") == (22, 5), lambda: f"two calls; {tokens(house, 'again')}")

    def lines() -> list[str]:
        return [line["text"] for line in house.said("again")]

    front = next(line for line in lines() if line.startswith("in front: "))
    os.kill(int(front.split()[-1]), signal.SIGUSR1)
    house.until(lambda: sum("KTESIO_USAGE" in line for line in lines()) >= 4, lambda: f"again; {lines()}")
    send(house, "again", "six")
    house.until(lambda: tokens(house, "again") == (25, 6), lambda: f"one more; {tokens(house, 'again')}")
    assert "all" == house.entry("again")["usage"]["usage_known"]
    reports = [line.split("KTESIO_USAGE ")[1] for line in lines() if "KTESIO_USAGE" in line]
    assert [1, 2, 1, 2, 3] == [json.loads(report)["sequence"] for report in reports]
    assert reports[:2] == reports[2:4]
    house.stop("again")


# -- proven by the kit -----------------------------------------------------------------------------------------

QUICK = ("metering_self_reported", "adoption")


@pytest.mark.parametrize("sections", [QUICK, pytest.param((), marks=pytest.mark.long)], ids=["quick", "all"])
def test_the_kit_proves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sections: tuple[str, ...]
) -> None:
    """The shim and its agent themselves are driven: nothing stands in for them."""
    for source, name in ((SHIM, "kt-example-shim"), (AGENT, "kt-example-agent")):
        shutil.copy(source, tmp_path / name)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    proven = kit.run(FOLDER, sections=sections)

    assert proven.passed, proven.document()
    assert {"subject"} == {one.driven_by for one in proven.sections if one.status != report.NOT_APPLICABLE}

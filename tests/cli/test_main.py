import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kt_cli import main

LEAVES = (
    [("agent", verb) for verb in main.AGENT_VERBS if verb != "config"]
    + [("agent", "config", verb) for verb in ("set", "get", "unset")]
    + [("engine", verb) for verb in main.ENGINE_VERBS]
    + [("demo",), ("events",), ("doctor",), ("adapter", "validate")]
)
SLOW = (
    "pydantic",
    "sqlalchemy",
    "alembic",
    "mitmproxy",
    "rich",
    "aiohttp",
    "asyncio",
    "http.client",
    "subprocess",
)
LIMIT_CPU_S = 0.150


def test_without_a_verb_it_explains_itself(kt: Any) -> None:
    done = kt()

    assert 0 == done.code
    assert "kt demo" in done.out and "Usage: kt" in done.out


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_verb_teaches_by_example(kt: Any, words: tuple[str, ...]) -> None:
    done = kt(*words, "--help")

    assert 0 == done.code
    assert re.search(rf"Examples?:\n +(\w+=\S+ )?kt {' '.join(words)}", done.out)
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.parametrize("words", [("agent",), ("engine",), ("adapter",), ("agent", "config")], ids=" ".join)
def test_every_group_explains_itself(kt: Any, words: tuple[str, ...]) -> None:
    assert "Example" in kt(*words, "--help").out


@pytest.mark.parametrize(
    "words", [(), ("agent",), ("engine",), ("adapter",), ("agent", "config")], ids=" ".join
)
def test_a_group_without_a_verb_prints_its_help(kt: Any, words: tuple[str, ...]) -> None:
    done = kt(*words)

    assert (done.code, done.err) == (0, "")
    assert "Commands:" in done.out


def test_an_unknown_verb_is_answered_with_those_there_are(kt: Any) -> None:
    assert "got the verb 'lst', wanted one of: register, list, show" in kt("agent", "lst").err


def test_shells_get_their_completions(kt: Any) -> None:
    asked = {"_KT_COMPLETE": "bash_complete", "COMP_WORDS": "kt agent st", "COMP_CWORD": "2"}

    assert ["plain,start", "plain,stop"] == kt(env=asked).out.split()


def test_it_says_which_version_it_is(kt: Any) -> None:
    done = kt("--version")

    assert 0 == done.code
    assert re.fullmatch(r"kt (\d+\.\d+\.\d+\S*|unknown .*)\n", done.out)


@pytest.mark.parametrize(
    "words",
    [
        ("agnt",),
        ("agent", "lst"),
        ("agent", "list", "--jsn"),
        ("agent", "list", "surplus"),
        ("agent", "show"),
        ("agent", "stop", "x", "--timeout", "-1"),
        ("agent", "stop", "x", "--timeout", "soon"),
        ("agent", "stop", "x", "--timeout", "nan"),
        ("agent", "remove", "x", "--delete", "--retain"),
        ("agent", "config", "set", "x", "key"),
        ("agent", "config", "set", "x", "key", "two", "words"),
        ("agent", "register", "x"),
        ("agent", "register", "x", "--kind", "mock", "--manifest", "."),
        ("agent", "register", "x", "--kind", "mock", "--observe"),
        ("agent", "register", "x", "--kind", "mock", "--", "prog"),
        ("agent", "register", "x", "--kind", "command"),
        ("agent", "register", "x", "--kind", "no-such-kind"),
        ("agent", "register", "Bad Name", "--kind", "mock"),
        ("agent", "show", "../etc"),
        ("demo", "--state-dir", "relative"),
    ],
    ids=" ".join,
)
def test_wrong_use_is_exit_2_and_leaves_nothing_behind(kt: Any, words: tuple[str, ...]) -> None:
    done = kt(*words)

    assert (done.code, done.out) == (2, "")
    assert done.err and "Traceback" not in done.err
    assert not kt.state.exists()


def test_the_fast_path_imports_nothing_slow(kt: Any, script: Any) -> None:
    script.answer_json(200, FLEET)
    probe = "import sys; from kt_cli import main; main.run(['agent', 'list'])"
    probe += f"; sys.stderr.write(repr([name for name in {SLOW!r} if name in sys.modules]))"

    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, env=kt.environment(), timeout=60
    )

    assert "[]" == done.stderr
    assert "bot" in done.stdout


def cpu_s(command: list[str], environment: dict[str, str]) -> float:
    """Return the CPU time, user and system, of one command and its children."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert 0 == process.returncode
    return usage.ru_utime + usage.ru_stime


def test_listing_costs_little_cpu(kt: Any, script: Any) -> None:
    """At most 150 ms; on a machine so busy that CPU time itself swells, at most nine bare interpreters."""
    bare, spent = [], []
    for _ in range(5):
        script.answer_json(200, FLEET)
        bare.append(cpu_s([sys.executable, "-c", "pass"], kt.environment()))
        spent.append(cpu_s(kt.command("agent", "list"), kt.environment()))

    text = "kt agent list: {:.0f} ms CPU at best, {:.0f} at worst; a bare interpreter {:.0f} ms\n"
    sys.stdout.write(text.format(min(spent) * 1000, max(spent) * 1000, min(bare) * 1000))
    assert min(spent) <= max(LIMIT_CPU_S, 9 * min(bare))


def test_a_reader_that_leaves_is_no_error(kt: Any, script: Any) -> None:
    line = b'{"schema_version":1,"instance":"x","stream":"agent-out","at":"2026-01-01T00:00:00Z","text":"hello"}\n'
    script.answer(b"HTTP/1.1 200 OK\r\n\r\n", line * 20_000)
    (kt.state / "ledger.db").touch()
    process = subprocess.Popen(
        kt.command("agent", "logs", "x"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=kt.environment()
    )
    assert process.stdout is not None and process.stderr is not None

    first = process.stdout.readline()
    process.stdout.close()

    assert b"2026-01-01T00:00:00Z [agent-out] hello\n" == first
    assert (process.wait(30), process.stderr.read()) == (0, b"")
    process.stderr.close()


def test_output_that_was_closed_from_the_start_is_no_traceback(kt: Any) -> None:
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run(
        kt.command("agent", "list", "--json"),
        stdout=writing,
        stderr=subprocess.PIPE,
        env=kt.environment(),
        timeout=60,
    )

    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_is_130_without_a_traceback(kt: Any, script: Any) -> None:
    script.answer(b"HTTP/1.1 200 OK\r\n\r\n", LOG_LINE, b"<hang>")
    process = subprocess.Popen(
        kt.command("agent", "logs", "x", "-f"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=kt.environment(),
    )
    assert process.stdout is not None
    process.stdout.readline()  # it follows now

    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)

    assert (process.returncode, said) == (130, b"")


def test_a_terminal_that_knows_no_dash_is_no_reason_to_fail(kt: Any, script: Any) -> None:
    script.answer_json(200, FLEET)

    done = kt("agent", "list", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})

    assert (done.code, done.err) == (0, "")
    assert "bot" in done.out


def test_an_error_of_our_own_is_one_sentence(kt: Any, script: Any) -> None:
    script.answer_json(200, {"no": "instances"})

    done = kt("agent", "list")

    assert 1 == done.code
    assert done.err.startswith("kt: unexpected KeyError") and "Traceback" not in done.err


def test_debugging_shows_where(kt: Any, script: Any) -> None:
    script.answer_json(200, {"no": "instances"})

    assert "Traceback" in kt("agent", "list", env={"KT_DEBUG": "1"}).err


LOG_LINE = (
    b'{"schema_version":1,"instance":"x","stream":"agent-out","at":"2026-01-01T00:00:00Z","text":"hello"}\n'
)
FLEET = {
    "schema_version": 2,
    "totals": {
        "total_input_tokens": 1200,
        "total_output_tokens": 34,
        "dollars_partial": False,
        "unpriced_count": 1,
        "usage_known": "all",
        "unmeasured_calls": 0,
    },
    "instances": [
        {
            "name": "bot",
            "kind": "command",
            "state": "running",
            "restart_count": 0,
            "restart_policy": "never",
            "budget": None,
            "usage": {
                "cumulative_input_tokens": 1200,
                "cumulative_output_tokens": 34,
                "current_run_input_tokens": 1200,
                "current_run_output_tokens": 34,
                "usage_known": "all",
                "unmeasured_calls": 0,
            },
            "metering_source": "self-reported",
            "agent_home": "/state/agents/bot",
        }
    ],
}


def test_a_question_is_asked_again_where_the_engine_died_over_it(kt: Any, script: Any) -> None:
    script.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{")
    script.answer_json(200, FLEET)

    assert FLEET == json.loads(kt("agent", "list", "--json").out)


def test_an_order_is_not_given_twice(kt: Any, script: Any) -> None:
    (kt.state / "ledger.db").touch()
    script.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{")

    done = kt("agent", "start", "x")

    assert 1 == done.code
    assert "may have been done" in done.err
    assert 1 == len(script.heads)


def test_json_is_the_engines_own_document(kt: Any, script: Any) -> None:
    script.answer_json(200, FLEET)

    assert FLEET == json.loads(kt("agent", "list", "--json").out)


def test_the_state_directory_may_not_be_ours(tmp_path: Path, kt: Any) -> None:
    kt.state.write_text("a file")

    done = kt("agent", "register", "x", "--kind", "mock")

    assert 1 == done.code
    assert "cannot use the state directory" in done.err
    assert "a file" == kt.state.read_text()

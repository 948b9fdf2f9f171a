"""`send`, `attach` and `logs -f` as people use them: real engine, real agents, real terminals."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kt_cli.commands.send import Wanted, understood

READS = (
    "import sys\nprint('up', flush=True)\nfor line in sys.stdin:\n    print('got', repr(line), flush=True)\n"
)
DEADLINE_S = 30.0
KILLS = 2


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, words: list[str], env: dict[str, str]) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            words, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
        )
        os.close(slave)
        self.seen = b""

    def wait_for(self, text: bytes) -> bytes:
        """Read until `text` was shown; return everything shown so far."""
        ends_s = time.monotonic() + DEADLINE_S
        while text not in self.seen:
            ready, _, _ = select.select([self.master], [], [], max(0.0, ends_s - time.monotonic()))
            assert ready, f"never shown: {text!r}; was shown: {self.seen!r}"
            self.seen += os.read(self.master, 65536)
        return self.seen

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def end(self) -> int:
        """Return the exit code; reads what is still shown meanwhile."""
        with contextlib.suppress(OSError):  # EIO: nobody has the terminal any more
            while data := os.read(self.master, 65536):
                self.seen += data
        os.close(self.master)
        return self.process.wait(DEADLINE_S)


@pytest.fixture
def bot(shared_kt: Any) -> Iterator[Any]:
    """A running agent that answers what it reads."""
    kt = shared_kt
    command = [sys.executable, "-u", "-c", READS]
    kt.client.register("bot", kind="command", command=command, interactive=True)
    kt.client.start("bot")
    yield kt


@pytest.fixture
def screen(bot: Any) -> Iterator[Callable[..., Terminal]]:
    """Run `kt` in a terminal."""
    opened: list[Terminal] = []

    def begin(*words: str, **more: str) -> Terminal:
        opened.append(Terminal(bot.command(*words), bot.environment(TERM="xterm", **more)))
        return opened[-1]

    yield begin
    for one in opened:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def test_a_line_typed_into_an_attached_terminal_is_answered_and_ctrl_bracket_leaves(
    bot: Any, screen: Any
) -> None:
    terminal = screen("agent", "attach", "bot")
    terminal.wait_for(b"up\r\n")

    terminal.type(b"hellp\x7fo\r")
    terminal.wait_for(b"got 'hello\\n'")
    terminal.type(b"half\x1d")
    code = terminal.end()

    assert 0 == code
    assert b"Ctrl-] leaves" in terminal.seen and b"it goes on" in terminal.seen
    assert "half" not in bot("agent", "logs", "bot").out
    assert "running" in bot("agent", "show", "bot").out


def test_ctrl_c_and_ctrl_d_leave_the_agent_alone(bot: Any, screen: Any) -> None:
    codes = []
    for key in (b"\x04", b"\x03"):
        terminal = screen("agent", "attach", "bot")
        terminal.wait_for(b"up\r\n")
        os.set_blocking(terminal.master, True)
        if key == b"\x03":
            os.killpg(terminal.process.pid, signal.SIGINT)  # this terminal is nobody's controlling one
        else:
            terminal.type(key)
        codes.append(terminal.end())

    assert [0, 130] == codes
    assert 0 == bot("agent", "send", "bot", "still there").code


def test_a_client_that_dies_leaves_its_agent_and_its_engine_as_they_were(bot: Any, screen: Any) -> None:
    for _ in range(3):
        terminal = screen("agent", "attach", "bot")
        terminal.wait_for(b"up\r\n")
        terminal.process.kill()
        terminal.end()

    again = screen("agent", "attach", "bot", "--tail", "0", "--detach-key", "ctrl-a")
    again.wait_for(b"Ctrl-A leaves")
    again.type(b"once\r")
    again.wait_for(b"got 'once\\n'")
    again.type(b"\x01")

    assert 0 == again.end()
    assert b"up\r\n" not in again.seen
    assert 1 == bot("agent", "logs", "bot").out.count("got")


def test_without_a_terminal_attach_is_a_filter_that_ends_with_its_reader_or_the_agent(bot: Any) -> None:
    filtering = subprocess.Popen(
        bot.command("agent", "attach", "bot", "--tail", "0"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=bot.environment(),
    )
    assert filtering.stdin is not None and filtering.stdout is not None and filtering.stderr is not None

    filtering.stdin.write(b"a\nno end")
    filtering.stdin.close()
    answers = [filtering.stdout.readline() for _ in range(2)]
    bot.client.stop("bot", timeout_s=1)

    assert [b"got 'a\\n'\n", b"got 'no end\\n'\n"] == answers
    assert (0, True) == (filtering.wait(DEADLINE_S), b"its state is stopped" in filtering.stderr.read())
    filtering.stdout.close()
    filtering.stderr.close()
    refused = bot("agent", "attach", "bot")
    assert (4, True) == (refused.code, "kt agent logs bot" in refused.err)


def test_attach_shows_no_control_sequence_but_colours(shared_kt: Any) -> None:
    kt = shared_kt
    code = "import time\nprint('\\x1b[31mred\\x1b[2J\\x1b]0;title\\x07|\\rover', flush=True)\ntime.sleep(600)"
    kt.client.register("art", kind="command", command=[sys.executable, "-u", "-c", code])
    kt.client.start("art")
    terminal = Terminal(kt.command("agent", "attach", "art"), kt.environment(TERM="xterm"))

    seen = terminal.wait_for(b"over")
    terminal.type(b"\x1d")

    assert 0 == terminal.end()
    assert b"\x1b[31mred|\rover" in seen
    assert b"declares no interaction" in terminal.seen


def test_send_says_what_was_taken_and_reads_files_and_pipes(bot: Any, tmp_path: Path) -> None:
    file = tmp_path / "message"
    file.write_bytes(b"two\nlines\n")

    said = [
        bot("agent", "send", "bot", "--help"),
        bot("agent", "send", "bot", "-v", "two  spaces", "--", "--eof", "x"),
        bot("agent", "send", "bot", "--json", "--file", str(file)),
    ]
    piped = subprocess.run(
        bot.command("agent", "send", "bot", "-"),
        input=b"piped",
        env=bot.environment(),
        capture_output=True,
        timeout=60,
    )

    assert [0, 0, 0, 0] == [*(one.code for one in said), piped.returncode]
    assert ("Sent 7 bytes to bot.\n", b"Sent 6 bytes to bot.\n") == (said[0].out, piped.stdout)
    ends_s = time.monotonic() + DEADLINE_S
    while (log := bot("agent", "logs", "bot", "--stream", "out").out).count("got") < 5:
        assert time.monotonic() < ends_s, log
    wanted = ["--help", "-v two  spaces -- --eof x", "two", "lines", "piped"]
    assert [repr(f"{text}\n") for text in wanted] == [
        line.partition("got ")[2] for line in log.splitlines()[1:]
    ]


def test_a_follower_goes_on_when_its_engine_is_killed_and_ends_with_its_agent(bot: Any) -> None:
    following = subprocess.Popen(
        bot.command("agent", "logs", "bot", "-f", "--stream", "out", "--precise"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=bot.environment(),
    )
    assert following.stdout is not None and following.stderr is not None
    lines = [following.stdout.readline()]
    for number in range(KILLS):
        bot.client.send("bot", str(number))
        lines.append(following.stdout.readline())
        os.kill(bot.client.engine_status()["pid"], signal.SIGKILL)
        assert 0 == bot("agent", "show", "bot").code  # it is back

    bot.client.stop("bot", timeout_s=1)

    rest, err = following.communicate(timeout=DEADLINE_S)
    assert ["up", *(f"got '{number}\\n'" for number in range(KILLS))] == [
        line.decode().partition("] ")[2].strip() for line in lines
    ]
    assert (b"", 0, True) == (rest, following.returncode, b"no longer runs" in err)
    assert all(len(line.split(b" ")[0]) == len("2026-01-01T00:00:00.123456789Z") for line in lines)


def test_a_quiet_log_is_let_go_when_its_reader_leaves(bot: Any) -> None:
    following = subprocess.Popen(
        bot.command("agent", "logs", "bot", "-f", "--tail", "1"),
        stdout=subprocess.PIPE,
        env=bot.environment(),
    )
    assert following.stdout is not None
    following.stdout.readline()

    following.stdout.close()

    assert 0 == following.wait(DEADLINE_S)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("bot", "hi", "there"), Wanted("bot", b"hi there", eof=False, as_json=False)),
        (("bot", "--eof"), Wanted("bot", None, eof=True, as_json=False)),
        (("bot", "hi", "--eof"), Wanted("bot", b"hi", eof=True, as_json=False)),
        (("bot", "--", "hi", "--eof"), Wanted("bot", b"hi --eof", eof=False, as_json=False)),
        (("bot", "--", "-"), Wanted("bot", b"-", eof=False, as_json=False)),
        (("bot", "--json", "-x"), Wanted("bot", b"-x", eof=False, as_json=True)),
        (("bot", ""), Wanted("bot", b"", eof=False, as_json=False)),
    ],
)
def test_words_are_a_message_unless_they_come_first(words: tuple[str, ...], wanted: Wanted) -> None:
    assert wanted == understood(words)


@pytest.mark.parametrize("words", [("bot",), ("bot", "--file"), ("bot", "--file", "x", "text"), ()])
def test_a_send_of_nothing_is_wrong_use(kt: Any, words: tuple[str, ...]) -> None:
    assert 2 == kt("agent", "send", *words).code


@pytest.mark.parametrize("key", ["ctrl-c", "x", "ctrl-1", "", "ctrl-["])
def test_a_key_that_cannot_leave_is_refused(kt: Any, key: str) -> None:
    assert 2 == kt("agent", "attach", "bot", "--detach-key", key).code


def test_an_attachment_whose_engine_is_killed_says_so_and_leaves_the_agent(bot: Any, screen: Any) -> None:
    terminal = screen("agent", "attach", "bot")
    terminal.wait_for(b"up\r\n")
    os.kill(bot.client.engine_status()["pid"], signal.SIGKILL)

    assert 1 == terminal.end()
    assert b"attach again" in terminal.seen
    assert "running" in bot("agent", "show", "bot").out

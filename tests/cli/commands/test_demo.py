import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

LIMIT_S = 90
INTERRUPTIONS = [signal.SIGINT, signal.SIGTERM] if "KT_CHAOS" in os.environ else [signal.SIGINT]


def left_behind(mark: str) -> list[str]:
    """Return the command lines of all processes that name `mark`."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if any(mark in word for word in words) and process.pid != os.getpid():
            found.append(" ".join(words))
    return found


@pytest.mark.chaos
@pytest.mark.long
def test_the_demo_is_right_and_leaves_nothing(kt: Any, tmp_path: Path) -> None:
    done = kt("demo", env={"TMPDIR": str(tmp_path)})

    assert (done.code, done.err) == (0, "")
    assert "each is in the ledger, once, with the provider's figures" in " ".join(done.out.split())
    assert "\x1b" not in done.out
    assert max(map(len, done.out.splitlines())) <= 100
    assert [] == list(tmp_path.glob("kt-demo-*"))
    assert [] == left_behind(str(tmp_path))
    assert not kt.state.exists()


@pytest.mark.chaos
@pytest.mark.long
def test_the_demo_as_json_is_one_document_over_a_state_that_can_be_looked_at(kt: Any, tmp_path: Path) -> None:
    kept = tmp_path / "kept"

    done = kt("demo", "--json", "--state-dir", str(kept))
    listed = kt("agent", "list", env={"KTESIO_STATE_DIR": str(kept)})
    _gateway_is_up(kt, kept)
    kt("engine", "stop", "--all", env={"KTESIO_STATE_DIR": str(kept)})

    document = json.loads(done.out)
    assert (0, "", str(kept)) == (done.code, done.err, document["state_dir"])
    assert "opaque" in listed.out and "both" in listed.out
    assert {"replay": 1, "malformed": 1} == document["findings"]["reporter"]
    assert document["provider"]["agrees"] is True
    assert 8 == document["provider"]["provider_calls"] == document["provider"]["ledger_rows"]
    entries = {entry["name"]: entry for entry in document["fleet"]["instances"]}
    opaque, reporter, both = (
        entries["opaque"]["usage"],
        entries["reporter"]["usage"],
        entries["both"]["usage"],
    )
    # Two stories, one answer, one squeezed; the cut one is not known.
    assert opaque["cumulative_input_tokens"] == 2 * 1200 + 640 + 2048
    assert (opaque["usage_known"], opaque["unmeasured_calls"]) == ("partial", 1)
    assert reporter["cumulative_input_tokens"] == 300 + 310 + 320 + 330 + 340
    assert both["cumulative_input_tokens"] == 2 * 640, "what it reports itself counts, not the third call"


def _gateway_is_up(kt: Any, state: Path) -> None:
    """Wait for the gateway that `list` brought back: one that is only being started escapes `engine stop --all`."""
    end = time.monotonic() + LIMIT_S
    while not json.loads(kt("engine", "status", "--json", env={"KTESIO_STATE_DIR": str(state)}).out)[
        "gateway"
    ]:
        assert time.monotonic() < end, "no gateway"


def test_a_directory_with_something_in_it_is_refused(kt: Any, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")

    done = kt("demo", "--state-dir", str(tmp_path))

    assert 2 == done.code
    assert "is not empty" in done.err


@pytest.mark.long
@pytest.mark.chaos
@pytest.mark.parametrize("name", INTERRUPTIONS)
def test_an_interrupted_demo_cleans_up(kt: Any, tmp_path: Path, name: signal.Signals) -> None:
    process = subprocess.Popen(
        kt.command("demo"), stdout=subprocess.PIPE, text=True, env=kt.environment(TMPDIR=str(tmp_path))
    )
    assert process.stdout is not None
    while "running" not in process.stdout.readline():
        assert process.poll() is None

    process.send_signal(name)
    process.communicate(timeout=LIMIT_S)

    assert 130 == process.returncode
    assert [] == list(tmp_path.glob("kt-demo-*"))
    assert [] == left_behind(str(tmp_path))


def test_on_a_terminal_it_draws_and_leaves_nothing(kt: Any, tmp_path: Path) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        kt.command("demo"),
        stdout=slave,
        stderr=slave,
        env=kt.environment(TMPDIR=str(tmp_path), TERM="xterm", COLUMNS="80"),
    )
    os.close(slave)

    seen = _all(master)

    assert 0 == process.wait(LIMIT_S)
    assert "\x1b[" in seen and "opaque" in seen
    assert [] == list(tmp_path.glob("kt-demo-*"))
    assert [] == left_behind(str(tmp_path))
    assert not kt.state.exists()


def _all(master: int) -> str:
    seen, end = b"", time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        try:
            data = os.read(master, 65536)
        except OSError:  # Linux: the other side was closed
            break
        if not data:
            break
        seen += data
    os.close(master)
    return seen.decode(errors="replace")

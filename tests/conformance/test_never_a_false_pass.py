"""Agents and adapters that lie, each caught by the section that is about it, for the reason that is its own."""

import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.conftest import FAKE, OBSERVED, Declared, fake, liar

from kt_conformance import kit
from kt_conformance.rig import Rig

REPORTS = "[kt.test]\nreports = { input_tokens = 30, output_tokens = 60 }"
LED = {"metering.base_url": 'env = "OPENAI_BASE_URL"'}
MEMORY = {"memory.dir": 'env = "MEMORY"'}
MODEL = {"model": 'env = "MODEL"'}
TALKS = {"interaction": "guaranteed"}


def wrapped(script: str) -> tuple[str, ...]:
    """A shell that becomes the agent, after doing something to what it was given."""
    return ("sh", "-c", script, "wrapper", sys.executable, "-u", FAKE)


def observed(name: str, more: str = "") -> Declared:
    return Declared(liar(name), source="engine-observed", mapping=OBSERVED, more=more)


ISOLATED = '[kt.isolation]\nenv = { XDG_DATA_HOME = "xdg/data" }'

QUICK: dict[str, tuple[str, Declared, str]] = {
    "drops a variable": (
        "config_mapping",
        Declared(wrapped('unset MODEL; exec "$@"'), mapping=MODEL),
        "got None in variable MODEL",
    ),
    "says other numbers the second time": (
        "metering_self_reported",
        Declared(liar("says_other_numbers_the_second_time")),
        "wanted the same numbers whenever a line is repeated",
    ),
    "is done when it fails": (
        "lifecycle",
        Declared(fake(), more='[kt.test]\ncrash = ["--crash-after-ms", "600", "--crash-with", "0"]'),
        "wanted failed: the program ended with 0",
    ),
    "writes into its home": (
        "isolation_and_updates",
        Declared(liar("writes_into_its_home"), more=ISOLATED),
        "got $HOME/.jbad, written outside of the isolated folders",
    ),
    "goes around its base URL": (
        "metering_engine_observed",
        observed("goes_around_its_base_url"),
        "1 of 1 calls around the gateway",
    ),
}

LONG: dict[str, tuple[str, Declared, str]] = {
    "leaves temporary files": (
        "isolation_and_updates",
        Declared(liar("leaves_temporary_files"), more=ISOLATED),
        "got $TMPDIR/session, written outside",
    ),
    "fails before it is ready": (
        "restart",
        Declared(fake(), more='[kt.ready]\nline = "^ready"\n[kt.test]\ncrash = ["--exit-fast", "3"]'),
        "the failure has to come after readiness",
    ),
    "does not go on after a pause": (
        "pause",
        Declared(liar("stops_working_once_thawed")),
        "[kt.test] args can make it work continuously",
    ),
    "drops a variable inside": (
        "config_mapping",
        Declared(fake("--drop-env", "MODEL"), mapping=MODEL, more='[kt.test]\ndump = ["--dump", "{path}"]'),
        "says that it was not given env=MODEL=",
    ),
    "ignores the flag": (
        "config_mapping",
        Declared(wrapped('exec "$1" "$2" "$3"'), mapping={"model": 'flag = "--model"'}),
        "got None in flag --model",
    ),
    "uses another model": (
        "config_mapping",
        observed("uses_another_model"),
        "calls for the model my-favourite",
    ),
    "counts a replay again": (
        "metering_self_reported",
        Declared(liar("counts_a_replay_again"), more=REPORTS),
        "reports of 40 input and 80 output tokens, wanted 30 and 60",
    ),
    "writes half a line": (
        "metering_self_reported",
        Declared(liar("writes_half_a_line")),
        "got the usage line",
    ),
    "says zero for unknown": (
        "metering_self_reported",
        Declared(liar("says_zero_for_unknown"), mapping=LED),
        "a report of 0 input and 0 output tokens",
    ),
    "guesses what is unknown": (
        "metering_self_reported",
        Declared(liar("guesses_what_is_unknown"), mapping=LED),
        "got 1 reports where the provider said nothing of usage",
    ),
    "counts twice what was used": (
        "metering_self_reported",
        Declared(liar("counts_twice_what_was_used"), mapping=LED),
        "as its provider served",
    ),
    "forgets a call": (
        "metering_self_reported",
        Declared(liar("forgets_a_call"), mapping=LED),
        "got 1 reports of 2 calls",
    ),
    "reports nothing": ("metering_self_reported", Declared(liar("has_nothing_to_say")), "got no usage line"),
    "calls without the token": (
        "metering_engine_observed",
        observed("calls_without_the_token"),
        "refused with 401",
    ),
    "calls its listener without the token": (
        "listener_token",
        observed("calls_without_the_token"),
        "1 calls of the subject that were refused with 401",
    ),
    "goes around now and then": (
        "metering_engine_observed",
        observed("goes_around_now_and_then"),
        "1 of 2 calls around the gateway",
    ),
    "calls nobody": (
        "metering_engine_observed",
        observed("has_nothing_to_say"),
        "got no call at the listener",
    ),
    "is not led": (
        "metering_engine_observed",
        Declared(liar("has_nothing_to_say"), source="engine-observed"),
        "nothing tells the agent where to call",
    ),
    "forbids the usage of its streams": (
        "streamed_observed_metering",
        observed("forbids_the_usage_of_its_streams"),
        "1 streams without usage",
    ),
    "never streams": (
        "streamed_observed_metering",
        Declared(
            fake("--observed-calls", "1"),
            source="engine-observed",
            mapping=OBSERVED,
            more="[kt.test]\nstream = []",
        ),
        "got no streamed call",
    ),
    "reads and says nothing": (
        "interaction",
        Declared(liar("reads_and_says_nothing"), **TALKS),
        "neither printed the word nor asked its model",
    ),
    "says the same to everything": (
        "interaction",
        Declared(liar("says_the_same_to_everything"), **TALKS),
        "neither printed the word nor asked its model",
    ),
    "closes its input": (
        "interaction",
        Declared(liar("closes_its_input"), **TALKS),
        "neither printed the word nor asked its model",
    ),
    "is not given its memory": (
        "memory",
        Declared(wrapped('unset MEMORY; exec "$@"'), mapping=MEMORY),
        "memory.dir: got None in variable MEMORY",
    ),
    "empties its memory": ("memory", Declared(liar("empties_its_memory"), mapping=MEMORY), "lost a file"),
    "ends soon": ("lifecycle", Declared(liar("ends_soon")), "without having been asked to"),
    "has a stop command that stops nothing": (
        "lifecycle",
        Declared(liar("ignores-term"), more='[lifecycle.stop]\nexec = "true"'),
        "wanted [lifecycle.stop] to end the agent",
    ),
    "does not come back": ("restart", Declared(liar("does_not_come_back")), "another one is running"),
    "is done when it fails, so stays away": (
        "restart",
        Declared(fake(), more='[kt.test]\ncrash = ["--crash-after-ms", "600", "--crash-with", "0"]'),
        "the program ended with 0",
    ),
    "ends with the engine": (
        "adoption",
        Declared(liar("ends_with_the_engine")),
        "after the engine was killed",
    ),
}


def judge(rig: Rig, folder: Path, section: str, declared: Declared, reason: str) -> None:
    result = kit.one(declared.subject(folder), rig, section)

    assert "fail" == result.status, result
    assert reason in (result.reason or ""), result
    assert "the kit itself" not in (result.reason or "")


@pytest.mark.parametrize("lie", QUICK)
def test_a_lie_is_caught(rig: Rig, tmp_path: Path, lie: str) -> None:
    judge(rig, tmp_path, *QUICK[lie])


@pytest.mark.long
@pytest.mark.parametrize("lie", LONG)
def test_every_lie_is_caught(rig: Rig, tmp_path: Path, lie: str) -> None:
    judge(rig, tmp_path, *LONG[lie])


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[str]:
    """Somebody who was there before the kit, works where he is told to, and whom no engine can freeze or stop."""
    place = str(tmp_path / "daemon")
    over = threading.Event()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen()
        listener.settimeout(0.05)
        thread = threading.Thread(target=_work, args=(listener, over))
        thread.start()
        yield place
        over.set()
        thread.join()


def _work(listener: socket.socket, over: threading.Event) -> None:
    home: Path | None = None
    while not over.wait(0.05):
        try:
            with listener.accept()[0] as told:
                home = Path(told.recv(4096).decode())
        except TimeoutError:
            pass
        if home is not None and home.is_dir():
            (home / "heartbeat").write_text(str(time.monotonic()))


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ("pause", "while it was paused its files changed"),
        ("stop_tree", "files in the Agent Home that changed after the stop"),
    ],
)
def test_work_that_goes_on_elsewhere_is_seen(
    rig: Rig, tmp_path: Path, daemon: str, section: str, reason: str
) -> None:
    judge(rig, tmp_path, section, Declared(liar("has_a_daemon_do_it", daemon)), reason)

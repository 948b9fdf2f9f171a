import base64
import threading
from typing import Any

import pytest

from kt_supervisor.engine.output.positions import Position

TALKS = "import sys, time\nfor n in range({n}):\n    print(n, flush=True)\n    time.sleep({pause})\n"
SLEEPS = "import time\nprint('up', flush=True)\ntime.sleep(600)"


def logs(house: Any, query: str, name: str = "bot") -> list[dict[str, Any]]:
    return list(house.link.lines(f"/v1/agents/{name}/logs?{query}", timeout_s=40))


def texts(lines: list[dict[str, Any]]) -> list[str]:
    return [line["text"] for line in lines]


@pytest.fixture
def two_runs(house: Any) -> Any:
    code = "import sys, time\nfor n in range(5):\n    print('o', n, flush=True)\n    print('e', n, file=sys.stderr)\n"
    house.register("bot", code + "time.sleep(0.4)")
    for _ in range(2):
        house.start("bot")
        house.wait_for_state("bot", "stopped")
    return house


def test_reading_on_after_any_position_gives_each_later_line_once(two_runs: Any) -> None:
    everything = logs(two_runs, "")

    positions = [Position.parse(line["position"]) for line in everything]

    assert 26 == len(everything)
    assert sorted(positions) == positions and len(set(positions)) == len(positions)
    for at in (0, 1, 7, 12, 13, 14, 20, 25):
        assert everything[at + 1 :] == logs(two_runs, f"after={everything[at]['position']}")


@pytest.mark.parametrize("count", [0, 1, 3, 9, 14, 26, 100])
def test_the_tail_is_the_end_of_the_whole(two_runs: Any, count: int) -> None:
    everything = logs(two_runs, "")

    assert (everything[-count:] if count else []) == logs(two_runs, f"tail={count}")
    errors = [line for line in everything if line["stream"] == "agent-err"]
    assert texts(errors[-count:] if count else []) == texts(logs(two_runs, f"tail={count}&stream=err"))


def test_streams_runs_and_moments_choose(two_runs: Any) -> None:
    everything = logs(two_runs, "")
    out = [line for line in everything if line["stream"] == "agent-out"]
    runs = sorted({line["run"] for line in everything if line["run"]})

    assert texts(out) == texts(logs(two_runs, "stream=out"))
    quiet = [line for line in everything if line["stream"] != "agent-err"]
    assert texts(quiet) == texts(logs(two_runs, "stream=out&stream=engine"))
    for run in runs:
        within = logs(two_runs, f"run={run}")
        assert [line for line in out if line["run"] == run] == [
            line for line in within if line["stream"] == "agent-out"
        ]
        assert "starting" in within[0]["text"] and "-> stopped" in within[-1]["text"]
    second = next(line for line in out if line["run"] == runs[1])
    since_ns = _nanoseconds(second["at_exact"])
    assert texts(everything[everything.index(second) :]) == texts(logs(two_runs, f"since_ns={since_ns}"))
    assert [] == logs(two_runs, f"since_ns={since_ns + 10**12}")


def _nanoseconds(stamp: str) -> int:
    import datetime

    whole, _, fraction = stamp.removesuffix("Z").partition(".")
    moment = datetime.datetime.fromisoformat(whole + "+00:00")
    return int(moment.timestamp()) * 10**9 + int(fraction)


def test_what_cannot_be_read_is_refused_before_anything_is_shown(two_runs: Any) -> None:
    assert 2 == two_runs.refusal("GET", "/v1/agents/bot/logs?after=nowhere").exit_code
    assert 2 == two_runs.refusal("GET", "/v1/agents/bot/logs?tail=-1").exit_code
    assert 2 == two_runs.refusal("GET", "/v1/agents/bot/logs?stream=agent-out").exit_code
    assert 3 == two_runs.refusal("GET", "/v1/agents/bot/logs?run=00000000").exit_code
    assert 3 == two_runs.refusal("GET", "/v1/agents/nobody/logs").exit_code


def test_stamps_have_nanoseconds_beside_the_whole_seconds(two_runs: Any) -> None:
    lines = [line for line in logs(two_runs, "") if line["stream"] != "engine"]

    assert all(line["at_exact"].startswith(line["at"].removesuffix("Z") + ".") for line in lines)
    assert len({line["at_exact"] for line in lines}) > 2
    assert sorted(line["at_exact"] for line in lines) == [line["at_exact"] for line in lines]


def test_bytes_that_are_no_text_come_as_they_are(house: Any) -> None:
    said = b"a\xff\0\x1b[1mb\r\nc"
    house.register(
        "bot", f"import sys, time; sys.stdout.buffer.write({said!r}); sys.stdout.flush(); time.sleep(0.5)"
    )
    house.start("bot")
    house.wait_for_state("bot", "stopped")

    first, last = logs(house, "stream=out")

    assert "a\ufffd\0\x1b[1mb" == first["text"]
    assert b"a\xff\0\x1b[1mb\r" == base64.b64decode(first["bytes"])
    assert ("c", False) == (last["text"], "bytes" in last)


def test_an_unfinished_line_of_a_living_agent_is_shown_on_request_and_never_counted_as_read(
    house: Any,
) -> None:
    house.register(
        "bot", "import sys, time; sys.stdout.write('a\\npass'); sys.stdout.flush(); time.sleep(600)"
    )
    house.start("bot")
    house.until(lambda: logs(house, "stream=out&unfinished=1")[1:], "the half line is there")

    plain, shown = logs(house, "stream=out"), logs(house, "stream=out&unfinished=1")
    house.stop("bot", timeout_s=0)
    later = logs(house, f"stream=out&after={shown[-1]['position']}")

    assert ["a"] == texts(plain)
    assert (["a", "pass"], True) == (texts(shown), shown[-1]["unfinished"])
    assert ["pass"] == texts(later)


@pytest.mark.chaos
@pytest.mark.long
def test_a_follower_gets_every_line_once_over_rotation_a_restart_and_engines_that_are_killed(
    own_house: Any,
) -> None:
    wide = "'x' * 3000"
    go = own_house.root.parent / "go"
    code = f"import os, time\nfor n in range(3000):\n    print(n, {wide}, flush=True)\n"
    code += f"while not os.path.exists({str(go)!r}):\n    time.sleep(0.02)\ntime.sleep(0.5)"
    own_house.register("bot", code)
    own_house.set("bot", "logs.cap", "32M")
    got: list[dict[str, Any]] = []
    done = threading.Event()

    def follow() -> None:
        position, ended = "", 0
        while ended < 2:
            try:
                after = f"&after={position}" if position else ""
                for line in own_house.link.lines(f"/v1/agents/bot/logs?follow=1{after}", timeout_s=40):
                    got.append(line | {"text": line["text"][:40]})
                    position = line["position"]
                    ended += line["stream"] == "engine" and "-> stopped" in line["text"]
            except Exception:  # the engine was killed: its keeper brings it back
                own_house.wait_for_engine()
        done.set()

    own_house.start("bot")
    reader = threading.Thread(target=follow, daemon=True)
    reader.start()
    own_house.until(lambda: len(got) > 500, "the follower reads")
    own_house.kill_engine()
    own_house.wait_for_engine()
    own_house.until(lambda: len(got) > 1500, "it reads on")
    own_house.kill_engine()
    own_house.wait_for_engine()
    go.touch()
    own_house.wait_for_state("bot", "stopped")
    own_house.start("bot")
    assert done.wait(60), got[-1]
    reader.join()

    said = [int(line["text"].split()[0]) for line in got if line["stream"] == "agent-out"]
    assert [*range(3000), *range(3000)] == said
    assert not [line for line in got if "gap" in line]
    positions = [line["position"] for line in got]
    assert sorted(positions) == positions
    assert own_house.files.run(got[-1]["run"]).segment("out", 3).exists()


def test_a_reader_does_not_keep_its_engine_from_ending(own_house: Any) -> None:
    own_house.register("bot", SLEEPS)
    own_house.start("bot")
    follower = own_house.link.lines("/v1/agents/bot/logs?follow=1", timeout_s=20)
    next(follower)

    own_house.stop_engine()

    with pytest.raises(Exception, match="went away"):
        list(follower)
    own_house.boot()
    assert "up" in texts(logs(own_house, ""))


def test_json_is_one_object_a_line_with_the_contracts_fields(two_runs: Any) -> None:
    line = logs(two_runs, "stream=out&tail=1")[0]

    wanted = {"schema_version", "instance", "stream", "at", "text", "at_exact", "run", "position"}
    assert wanted == set(line)
    assert (1, "bot", "agent-out", "o 4") == (
        line["schema_version"],
        line["instance"],
        line["stream"],
        line["text"],
    )

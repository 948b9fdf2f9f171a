"""What each verb asks of the engine and what it says about the answer, at the socket between the two."""

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kt_client.configuration import DEFAULTS
from kt_manifest.contract import snapshot

USAGE = {
    "cumulative_input_tokens": 1200,
    "cumulative_output_tokens": 34,
    "current_run_input_tokens": 200,
    "current_run_output_tokens": 4,
    "usage_known": "partial",
    "unmeasured_calls": 2,
    "sources": {
        "engine-observed": {
            "events": 5,
            "exact": 3,
            "partial": 0,
            "unmeasured": {"upstream_cut": 2},
            "input_tokens": 1200,
            "output_tokens": 34,
        },
        "self-reported": {
            "events": 1,
            "exact": 1,
            "partial": 0,
            "unmeasured": {},
            "input_tokens": 9,
            "output_tokens": 1,
        },
    },
}
INSTANCE = {
    "name": "bot",
    "kind": "command",
    "state": "failed",
    "restart_count": 0,
    "restart_policy": "never",
    "failed_cause": {"kind": "launch-error", "detail": "no such \x1b[31mprogram"},
    "budget": None,
    "usage": USAGE,
    "metering_source": "engine-observed",
    "agent_home": "/state/agents/bot",
}
LINES = [
    {
        "schema_version": 1,
        "instance": "bot",
        "stream": "agent-out",
        "at": "2026-01-01T00:00:00Z",
        "text": "\x1b[31mred\x1b[2J",
    },
    {
        "schema_version": 1,
        "instance": "bot",
        "stream": "agent-err",
        "at": "2026-01-01T00:00:01Z",
        "text": "plain",
    },
]


@pytest.fixture
def asked(script: Any, kt: Any) -> Any:
    """Return (request line, body) of the last request to the scripted engine."""
    (kt.state / "ledger.db").touch()

    def last() -> tuple[str, Any]:
        head, _, body = script.heads[-1].partition(b"\r\n\r\n")
        return head.split(b" HTTP")[0].decode(), json.loads(body) if body else None

    return last


def ndjson(script: Any, lines: list[dict[str, Any]]) -> None:
    script.answer(b"HTTP/1.1 200 OK\r\n\r\n", *(json.dumps(line).encode() + b"\n" for line in lines))


def test_register_sends_the_frozen_adapter_and_shows_what_it_can(script: Any, kt: Any, asked: Any) -> None:
    script.answer_json(201, {"schema_version": 2, "instance": INSTANCE})

    done = kt(
        "agent", "register", "bot", "--kind", "command", "--observe", "--", "prog", "-v", "--", "--json"
    )

    line, body = asked()
    adapter = snapshot.Adapter.from_json(body["adapter"])
    assert (line, body["name"]) == ("POST /v1/agents", "bot")
    assert snapshot.Template(exec="prog", args=("-v", "--", "--json")) == adapter.start
    assert 0 == done.code
    assert "Registered bot (kind command).\nAgent Home: /state/agents/bot\n" in done.out
    assert "Capabilities for bot (OS: " in done.out
    assert "Next: kt agent config set bot metering.upstream_base_url" in done.err


def test_register_takes_a_relative_program_from_where_it_was_typed(
    script: Any, kt: Any, asked: Any, tmp_path: Path
) -> None:
    script.answer_json(201, {"instance": INSTANCE})

    kt("agent", "register", "bot", "--kind", "command", "--", "./prog", cwd=tmp_path)

    _, body = asked()
    adapter = snapshot.Adapter.from_json(body["adapter"])
    assert adapter.start is not None
    assert str(tmp_path / "prog") == os.path.normpath(adapter.start.exec)


def test_show_tells_state_sources_and_cause(script: Any, kt: Any, asked: Any) -> None:
    script.answer_json(200, {"schema_version": 2, "instance": INSTANCE})

    done = kt("agent", "show", "bot")

    assert "GET /v1/agents/bot" == asked()[0]
    assert "Runtime status for bot" in done.out
    assert "cumulative ≥ in 1,200 / out 34 (+2 unmeasured calls)" in " ".join(done.out.split())
    assert ["engine-observed", "5", "3", "0", "2", "1,200", "34"] in [
        line.split() for line in done.out.splitlines()
    ]
    assert "Failed: launch-error: no such \\x1b[31mprogram" in done.out


def test_usage_shows_both_witnesses_and_no_sum_of_them(script: Any, kt: Any, asked: Any) -> None:
    script.answer_json(
        200, {"schema_version": 2, "instance": "bot", "usage": USAGE, "metering_source": "engine-observed"}
    )

    done = kt("agent", "usage", "bot")

    assert "GET /v1/agents/bot/usage" == asked()[0]
    assert "1,209" not in done.out
    assert ["self-reported", "1", "1", "0", "0", "9", "1"] in [line.split() for line in done.out.splitlines()]


def test_start_sends_the_callers_environment(script: Any, kt: Any, asked: Any) -> None:
    script.answer_json(200, {"state": "running"})

    done = kt("agent", "start", "bot", "--detach", env={"MINE": "yes"})

    line, body = asked()
    assert (line, body["env"]["MINE"]) == ("POST /v1/agents/bot/start", "yes")
    assert (done.code, done.out) == (0, "Started bot.\nrunning\n")


@pytest.mark.parametrize(
    ("words", "expected"), [([], 30), (["--timeout", "0"], 0), (["--timeout", "2.5"], 2.5)]
)
def test_stop_passes_the_time_it_may_take(
    script: Any, kt: Any, asked: Any, words: list[str], expected: float
) -> None:
    script.answer_json(200, {"state": "stopped"})

    done = kt("agent", "stop", "bot", *words)

    assert ("POST /v1/agents/bot/stop", {"timeout_s": expected}) == asked()
    assert "stopped\n" == done.out


@pytest.mark.parametrize(
    ("words", "query"),
    [
        ([], "home=retain&force=0"),
        (["--retain"], "home=retain&force=0"),
        (["--delete", "--force"], "home=delete&force=1"),
    ],
)
def test_remove_says_what_becomes_of_the_home(
    script: Any, kt: Any, asked: Any, words: list[str], query: str
) -> None:
    script.answer_json(200, {})

    done = kt("agent", "remove", "bot", *words)

    assert f"DELETE /v1/agents/bot?{query}" == asked()[0]
    assert ("deleted" if "delete" in query else "kept") in done.out


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["-5"], "-5"),
        (["--help"], "--help"),
        (["--json"], "--json"),
        (["--", "-x"], "-x"),
        (["--"], "--"),
        ([""], ""),
    ],
)
def test_config_set_takes_a_leading_dash_as_it_is(
    script: Any, kt: Any, asked: Any, words: list[str], value: str
) -> None:
    script.answer_json(200, {})

    done = kt("agent", "config", "set", "bot", "agent.X", *words)

    line, body = asked()
    assert ("PUT /v1/agents/bot/config", "agent.X", value) == (line, body["key"], body["value"])
    assert (0, f"agent.X = {value}\n") == (done.code, done.out)


def test_a_flag_behind_the_value_is_told_where_it_goes(kt: Any) -> None:
    done = kt("agent", "config", "set", "bot", "model", "m", "--json")
    of_all = kt("config", "set", "model", "m", "--json")

    assert (2, 2) == (done.code, of_all.code)
    assert "got --json behind VALUE, wanted it before NAME" in done.err
    assert "wanted it before KEY" in of_all.err
    assert "NAME KEY VALUE\n" in kt("agent", "config", "set", "--help").out.replace("[OPTIONS] ", "")


@pytest.mark.parametrize("words", [("secret",), ("config",), ("agent", "config"), ("agent", "memory")])
def test_groups_list_their_verbs_in_the_order_of_a_life_and_whole(kt: Any, words: tuple[str, ...]) -> None:
    shown = kt(*words).out.partition("Commands:")[2]

    assert "..." not in shown
    first = {"memory": "attach"}.get(words[-1], "set")
    assert first == shown.split()[0]


def test_an_address_in_a_piped_table_stays_in_its_line(script: Any, kt: Any) -> None:
    url = "http://127.0.0.1:40001/" + "token/" * 30
    entries = [ENTRY | {"key": "metering.base_url", "value": url}]
    script.answer_json(200, {"schema_version": 1, "entries": entries})

    assert f"metering.base_url  {url}" in kt("agent", "config", "get", "bot", env={"COLUMNS": ""}).out


def test_show_says_parked_as_the_list_does(script: Any, kt: Any) -> None:
    parked = INSTANCE | {"state": "failed", "restart": {"parked": "because"}}
    script.answer_json(200, {"schema_version": 2, "instance": parked})

    assert "failed, parked" in kt("agent", "show", "bot").out


def test_usage_explains_a_lower_bound_without_an_unknown_call(script: Any, kt: Any) -> None:
    view = USAGE | {"usage_known": "partial", "unmeasured_calls": 0}
    for usage in (view, USAGE):
        script.answer_json(200, {"schema_version": 2, "instance": "bot", "usage": usage})

    assert "≥ although no call is unknown" in kt("agent", "usage", "bot").out
    assert "≥ although" not in kt("agent", "usage", "bot").out


ENTRY = {
    "key": "agent.A&B",
    "value": "v\x1b w",
    "source": "instance",
    "unvalidated": True,
    "file": "/h/c.toml",
}


def test_config_get_shows_a_table_of_what_is_set_and_where_it_comes_from(
    script: Any, kt: Any, asked: Any
) -> None:
    script.answer_json(200, {"schema_version": 1, "entries": [ENTRY]})

    done = kt("agent", "config", "get", "bot")

    assert "GET /v1/agents/bot/config" == asked()[0]
    assert ["Key", "Value", "Validated", "Source"] == done.out.split()[:4]
    assert ["agent.A&B", "v\\x1b", "w", "no", "instance"] == done.out.splitlines()[2].split()


@pytest.mark.parametrize(("value", "printed"), [("v\x1b w", "v\x1b w\n"), (["-a", "b"], "-a b\n")])
def test_config_get_of_one_key_is_its_value_alone(
    script: Any, kt: Any, asked: Any, value: Any, printed: str
) -> None:
    script.answer_json(200, {"schema_version": 1, "entries": [ENTRY | {"value": value}]})

    done = kt("agent", "config", "get", "bot", "agent.A&B", "--reveal")

    assert "GET /v1/agents/bot/config?key=agent.A%26B&reveal=1" == asked()[0]
    assert (0, printed, "") == (done.code, done.out, done.err)


def test_config_get_with_source_shows_file_and_what_is_hidden(script: Any, kt: Any, asked: Any) -> None:
    hides = [
        {"key": "agent.A&B", "value": "w", "source": "fleet"},
        {"key": "agent.A&B.C", "value": "x", "source": "kind-default"},
    ]
    faulty = ENTRY | {"hides": hides, "fault": "got \x1b"}
    script.answer_json(200, {"entries": [faulty], "alarms": [{"message": "bad\x1b", "layer": "instance"}]})

    done = kt("agent", "config", "get", "bot", "--source")

    assert [
        "agent.A&B = v\\x1b w",
        "    instance: /h/c.toml",
        "    hides w (fleet)",
        "    hides agent.A&B.C = x (kind-default)",
        "    not validated: a variable of the agent",
        "    fault: got \\x1b",
    ] == done.out.splitlines()
    assert "kt: alarm: bad\\x1b\n" == done.err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["get"], "GET /v1/config"),
        (["get", "model"], "GET /v1/config?key=model"),
        (["set", "agent.X", "-5"], "PUT /v1/config"),
        (["unset", "model"], "DELETE /v1/config?key=model"),
    ],
)
def test_config_without_an_agent_is_the_fleets(
    script: Any, kt: Any, asked: Any, words: list[str], line: str
) -> None:
    script.answer_json(200, {"entries": [ENTRY]})

    done = kt("config", *words)

    assert (0, line) == (done.code, asked()[0])


def test_a_start_takes_settings(script: Any, kt: Any, asked: Any) -> None:
    script.answer_json(200, {"state": "running"})

    kt("agent", "start", "bot", "--set", "model=a=b", "--set", "agent.X=")

    assert {"model": "a=b", "agent.X": ""} == asked()[1]["settings"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--set", "model"], "wanted KEY=VALUE"),
        (["--set", "=x"], "wanted KEY=VALUE"),
        (["--set", "a=1", "--set", "a=2"], "--set a twice"),
    ],
)
def test_a_start_refuses_settings_that_are_none(kt: Any, words: list[str], says: str) -> None:
    done = kt("agent", "start", "bot", *words)

    assert 2 == done.code
    assert says in done.err


def test_config_diff_shows_what_would_change(script: Any, kt: Any, asked: Any) -> None:
    change = {"key": "model", "from": "a", "to": None, "source": None, "effect": "at the next start"}
    secret = {"key": "k", "from": "secret:****", "to": "secret:****", "source": "fleet", "effect": "e"}
    script.answer_json(200, {"run_id": "r", "changes": [change, secret]})
    script.answer_json(200, {"run_id": "r", "changes": []})

    done, nothing = kt("agent", "config", "diff", "bot"), kt("agent", "config", "diff", "bot")

    assert "GET /v1/agents/bot/config/diff" == asked()[0]
    assert [
        "model: a -> unset, at the next start",
        "k: secret:**** -> another value (fleet), e",
    ] == done.out.splitlines()
    assert "Nothing would change.\n" == nothing.out


@pytest.mark.parametrize("words", [["config", "edit"], ["agent", "config", "edit", "bot"]])
def test_an_edit_without_a_terminal_says_what_to_use(kt: Any, words: list[str]) -> None:
    done = kt(*words)

    assert (2, "") == (done.code, done.out)
    assert "got no terminal" in done.err
    assert f"`kt {' '.join(words[:-1] if 'edit' == words[-1] else words[:-2])} set`" in done.err


def test_config_unset_names_its_key(script: Any, kt: Any, asked: Any) -> None:
    script.answer_json(200, {})

    kt("agent", "config", "unset", "bot", "model")

    assert "DELETE /v1/agents/bot/config?key=model" == asked()[0]


def test_notices_of_the_engine_go_to_standard_error(script: Any, kt: Any, asked: Any) -> None:
    script.answer_json(200, {"state": "running", "notices": ["the port was taken: now 23456"]})

    done = kt("agent", "start", "bot", "--json")

    assert "kt: the port was taken: now 23456\n" == done.err
    assert "running" == json.loads(done.out)["state"]


def test_logs_into_a_pipe_are_what_the_agent_wrote(script: Any, kt: Any, asked: Any) -> None:
    ndjson(script, LINES)

    done = kt("agent", "logs", "bot")

    assert "GET /v1/agents/bot/logs?follow=0&unfinished=1" == asked()[0]
    assert [
        "2026-01-01T00:00:00Z [agent-out] \x1b[31mred\x1b[2J",
        "2026-01-01T00:00:01Z [agent-err] plain",
    ] == done.out.splitlines()


def test_a_log_that_was_cut_is_not_taken_for_the_whole(script: Any, kt: Any, asked: Any) -> None:
    script.answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"5\r\n{")

    done = kt("agent", "logs", "bot")

    assert 1 == done.code
    assert "ask again: kt agent logs bot" in done.err


def test_logs_as_json_are_ndjson(script: Any, kt: Any, asked: Any) -> None:
    ndjson(script, LINES)

    done = kt("agent", "logs", "bot", "-f", "--json")

    assert LINES == [json.loads(line) for line in done.out.splitlines()]
    assert "no longer runs" in done.err


@pytest.mark.parametrize(
    ("more", "expected"), [({}, b"\x1b[31mred\x1b[0m\r\n"), ({"NO_COLOR": "1"}, b"[agent-out] red\r\n")]
)
def test_logs_on_a_terminal_keep_colours_only(
    script: Any, kt: Any, asked: Any, more: dict[str, str], expected: bytes
) -> None:
    ndjson(script, LINES)
    master, slave = pty.openpty()

    process = subprocess.Popen(
        kt.command("agent", "logs", "bot"), stdout=slave, env=kt.environment(TERM="xterm", **more)
    )
    os.close(slave)
    process.wait(30)

    seen = os.read(master, 65536)
    os.close(master)
    assert expected in seen
    assert b"\x1b[2J" not in seen


def test_engine_status_shows_the_pid(script: Any, kt: Any, asked: Any) -> None:
    script.answer_json(200, {"pid": 4711, "version": "0.1.0"})

    document = json.loads(kt("engine", "status", "--json").out)

    assert (True, 4711, str(kt.state)) == (document["running"], document["pid"], document["state_dir"])


def test_engine_stop_all_says_all(script: Any, kt: Any, asked: Any) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    script.answer_json(200, {"pid": ended.pid})
    script.answer_json(200, {})

    done = kt("engine", "stop", "--all")

    assert ("POST /v1/engine/stop", {"all": True}) == asked()
    assert "with all agents and the gateway" in done.out


@pytest.mark.parametrize("words", [("status",), ("stop",)])
def test_a_stopped_engine_is_said_to_be_so_and_not_started(kt: Any, words: tuple[str, ...]) -> None:
    done = kt("engine", *words)

    assert 0 == done.code
    assert "Engine not running." in done.out
    assert not kt.state.exists()
    assert {
        "schema_version": 1,
        "running": False,
        "state_dir": str(kt.state),
    } == json.loads(kt("engine", *words, "--json").out)


@pytest.mark.parametrize("words", [("list",), ("usage",)])
def test_an_unused_place_holds_an_empty_fleet_and_stays_unused(kt: Any, words: tuple[str, ...]) -> None:
    done = kt("agent", *words)
    document = json.loads(kt("agent", *words, "--json").out)

    assert 0 == done.code
    assert (document["schema_version"], document["totals"]["total_input_tokens"]) == (2, 0)
    assert not kt.state.exists()


def test_reading_settings_of_an_unused_place_shows_the_defaults_and_makes_nothing(kt: Any) -> None:
    table = kt("config", "get")
    cap = kt("config", "get", "logs.cap")
    unset = kt("config", "unset", "model")
    unknown = kt("config", "get", "modle")

    assert 0 == table.code
    assert all(key in table.out for key in DEFAULTS)
    assert (0, "256M\n") == (cap.code, cap.out)
    assert (2, True) == (unset.code, "nothing to unset" in unset.err)
    assert (2, True) == (unknown.code, "modle is not set" in unknown.err)
    assert not kt.state.exists()


CALL = {
    "model_answered": "m-1",
    "status": 200,
    "completeness": "exact",
    "input_tokens": 1200,
    "output_tokens": 3,
}


def called(seq: int, state: str = "ended") -> dict[str, Any]:
    return {"schema_version": 1, "seq": seq, "state": state, "sent": "yes", "latency_ns": 10**9, **CALL}


def cut_ndjson(script: Any, lines: list[dict[str, Any]]) -> None:
    """An answer whose engine dies over it: a chunk, and no end."""
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    script.answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(body), body))


def test_calls_are_followed_over_a_dead_engine_each_once_as_it_ends(script: Any, kt: Any) -> None:
    cut_ndjson(script, [called(1), called(2, "in_flight"), called(3)])
    ndjson(script, [called(2), called(3), called(4)])

    done = kt("agent", "calls", "bot", "-f", "--json")

    assert (0, [1, 3, 2, 4]) == (done.code, [json.loads(line)["seq"] for line in done.out.splitlines()])
    targets = [head.split(b" ")[1] for head in script.heads]
    assert b"/v1/agents/bot/exchanges?follow=1&limit=20" in targets[0]
    assert b"/v1/agents/bot/exchanges?follow=1&after=1" == targets[1]


def test_calls_are_followed_in_columns(script: Any, kt: Any) -> None:
    ndjson(script, [called(1)])

    done = kt("agent", "calls", "bot", "-f")

    assert ["m-1", "200", "exact", "1,200", "3", "1.00", "s"] == done.out.splitlines()[1].split()
    assert all(len(line) <= 96 for line in done.out.splitlines())


def test_a_stop_on_purpose_ends_a_follower(script: Any, kt: Any) -> None:
    cut_ndjson(script, [called(1)])
    (kt.state / "engine.stopped").write_text("on purpose")

    done = kt("agent", "calls", "bot", "-f", "--json")

    assert (0, 1) == (done.code, len(done.out.splitlines()))


def test_a_list_fits_into_the_columns_that_are_asked_for(script: Any, kt: Any) -> None:
    long = {**INSTANCE, "name": "an-agent-with-a-rather-long-name", "agent_home": "/state/" + "deep/" * 9}
    fleet = {"schema_version": 2, "totals": {"usage_known": "all"}, "instances": [long, INSTANCE]}
    for _ in range(3):
        script.answer_json(200, fleet)

    texts = {width: kt("agent", "list", env={"COLUMNS": width}).out for width in ("", "60", "120")}

    assert "an-agent-with-a-rather-long-name" in texts[""], "what is piped is never broken"
    assert len(texts[""].splitlines()) < len(texts["60"].splitlines())
    assert max(map(len, texts["60"].splitlines())) <= 60


REMOVED = {
    "schema_version": 2,
    "totals": {"total_input_tokens": 5},
    "removed": [
        {"name": "bot", "id": f"id-{n}", "removed_at": "2026-01-01T00:00:00Z", "usage": USAGE} for n in (1, 2)
    ],
}


@pytest.mark.parametrize(
    ("name", "ids"), [((), ["id-1", "id-2"]), (("bot",), ["id-1", "id-2"]), (("id-2",), ["id-2"])]
)
def test_usage_of_removed_agents_is_found_by_name_or_id(
    script: Any, kt: Any, name: tuple[str, ...], ids: list[str]
) -> None:
    script.answer_json(200, REMOVED)
    script.answer_json(200, REMOVED)

    text = kt("agent", "usage", *name, "--removed")
    document = json.loads(kt("agent", "usage", *name, "--removed", "--json").out)

    assert (0, ids) == (text.code, [word for word in ("id-1", "id-2") if word in text.out])
    assert ids == [one["id"] for one in document["removed"]]
    assert ("totals" in document) == (not name)
    assert b"/v1/usage?removed=1" in script.heads[0]


def test_a_removed_agent_that_never_was_is_not_found(script: Any, kt: Any) -> None:
    script.answer_json(200, REMOVED)

    done = kt("agent", "usage", "nobody", "--removed")

    assert 3 == done.code
    assert "wanted" in done.err


EVENTS: list[dict[str, Any]] = [
    {
        "seq": 4,
        "kind": "registered",
        "instance": "bot",
        "at": "2026-01-01T00:00:00Z",
        "adapter_kind": "command",
    },
    {
        "seq": 5,
        "kind": "transition",
        "instance": "bot",
        "at": "2026-01-01T00:00:01Z",
        "prior_state": "running",
        "new_state": "failed",
        "cause": {"kind": "crashed", "detail": "no \x1b[31m way"},
    },
    {
        "seq": 7,
        "kind": "usage_update",
        "instance": None,
        "instance_id": "i",
        "at": "2026-01-01T00:00:02Z",
        "event": {"metering_source": "engine-observed"},
        "added": {"events": 2, "unmeasured_calls": 1, "input_tokens": None, "output_tokens": 1200},
    },
]


def test_events_are_told_in_lines(script: Any, kt: Any) -> None:
    (kt.state / "ledger.db").touch()
    ndjson(script, EVENTS)

    lines = kt("events", "--agent", "bot").out.splitlines()

    assert "     4  2026-01-01T00:00:00Z  bot  registered  adapter_kind=command" == lines[0]
    assert "running -> failed (crashed: no \\x1b[31m way)" in lines[1]
    assert "+2 engine-observed: — in, 1,200 out, 1 not measured" in lines[2]
    assert b"GET /v1/events?follow=0&instance=bot&limit=20 " in script.heads[0]


def test_events_that_come_twice_are_an_error_and_not_a_result(script: Any, kt: Any) -> None:
    ndjson(script, [EVENTS[1], EVENTS[0]])

    done = kt("events", "--after", "4", "--json")

    assert (1, [5]) == (done.code, [json.loads(line)["seq"] for line in done.out.splitlines()])
    assert b"GET /v1/events?follow=0&after=4 " in script.heads[0]


@pytest.mark.parametrize(
    "words",
    [("--limit", "1001"), ("--limit", "-1"), ("--after", "x"), ("-f", "--after", "1", "--limit", "3")],
)
def test_events_that_are_asked_for_wrongly_are_exit_2(kt: Any, words: tuple[str, ...]) -> None:
    (kt.state).mkdir()
    (kt.state / "ledger.db").touch()

    assert 2 == kt("events", *words).code


def test_events_of_an_unused_place_are_none_and_leave_nothing(kt: Any) -> None:
    done = kt("events", "--follow")

    assert (0, "") == (done.code, done.out)
    assert not kt.state.exists()

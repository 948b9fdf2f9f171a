"""The faults of `[kt.ready]`, and the declaration that is frozen of it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kt_manifest import words
from kt_manifest.contract import kt_schema, snapshot
from kt_manifest.contract.findings import Draft, Finding
from kt_manifest.contract.snapshot import READY_DEADLINE_S, Ready
from kt_manifest.launch import readiness
from kt_manifest.line_pattern import LinePattern, PatternRefused

WAYS = ("line", "port", "http", "command")
LONGEST_DEADLINE_S = 3600
_SECTION = "[kt.ready]"


def declared(section: kt_schema.ReadySection) -> Ready:
    """Return what a judged section declares."""
    return Ready(
        line=section.line,
        stream=section.stream or "any",
        port=None if section.port is None else str(section.port),
        http=section.http,
        command=None if section.command is None else tuple(section.command),
        deadline_s=READY_DEADLINE_S if section.deadline_s is None else float(section.deadline_s),
    )


def judge(draft: Draft) -> Iterator[Finding]:
    """Give the faults of `[kt.ready]` that are more than a wrong type or an unknown word."""
    section = draft.get("kt", "ready")
    if not isinstance(section, dict):
        return
    ways = [way for way in WAYS if way in section]
    if len(ways) != 1:
        got, do = " and ".join(ways) or "none of them", "keep the one that tells best"
        lacks = None if ways else ("kt", "ready")
        found = _finding(got, "exactly one of line, port, http and command", do)
        yield replace(found, lacks=lacks)
    if "stream" in section and "line" not in section:
        yield _finding("stream without line", "stream beside line only", "remove stream")
    for name, judge_value in (
        ("line", _line),
        ("port", _declared_port),
        ("http", _http),
        ("command", _command),
    ):
        if (fault := judge_value(section.get(name))) is not None:
            yield fault
    deadline_s = section.get("deadline_s", READY_DEADLINE_S)
    if (
        isinstance(deadline_s, bool)
        or not isinstance(deadline_s, int | float)
        or not 0 < deadline_s <= LONGEST_DEADLINE_S
    ):
        yield _finding(
            f"deadline_s = {words.shown(deadline_s)}",
            f"seconds above 0, at most {LONGEST_DEADLINE_S}",
            "correct it",
        )


def _line(value: Any) -> Finding | None:
    if not isinstance(value, str):
        return None
    try:
        empty = LinePattern(value).found_in("")
    except PatternRefused as refused:
        wanted = (
            "a regular expression that can be matched in bounded time (docs/adapter-contract.md#readiness)"
        )
        return _finding(
            f"line = {words.shown(value)}: {words.shown(str(refused))}", wanted, "write it otherwise"
        )
    if empty:
        return _finding(
            f"line = {words.shown(value)}, which any line has", "a pattern that tells lines apart", "say more"
        )
    return None


def _declared_port(value: Any) -> Finding | None:
    wanted = 'a number from 1 to 65535, or "${NAME}", a variable of the agent'
    if value is None or (isinstance(value, str) and readiness.VARIABLE.fullmatch(value)):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65535:
        return None
    return _finding(f"port = {words.shown(value)}", wanted, "correct it")


def _http(value: Any) -> Finding | None:
    if not isinstance(value, str):
        return None
    if (fault := readiness.fault_in_url(readiness.VARIABLE.sub("1", value))) is None:
        return None
    wanted = "http:// on 127.0.0.1, localhost or [::1], with a port, such as http://127.0.0.1:${PORT}/health"
    return _finding(f"http = {words.shown(value)}, {fault}", wanted, "correct it")


def _command(value: Any) -> Finding | None:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        return None
    fault = snapshot.fault_in_exec(value[0]) if value else "no program"
    fault = fault or next((found for word in value if (found := words.fault_in_value(word))), None)
    if fault is None:
        return None
    return _finding(
        f"command with {fault}", "a program name or an absolute path, then its arguments", "correct it"
    )


def _finding(got: str, wanted: str, do: str) -> Finding:
    return Finding(_SECTION, "invalid_field", got, wanted, do)

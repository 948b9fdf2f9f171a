"""What a request says: its path, its query and its body, checked; Refused (exit code 2) for what makes no sense."""

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from kt_ledger.exit_codes import USAGE
from kt_supervisor.engine.problems import Refused

STOP_TIMEOUT_S = 30.0
LONGEST_S = 86_400


def name(request: web.Request) -> str:
    """Return whom the request is about."""
    return request.match_info["name"]


async def body(request: web.Request) -> dict[str, Any]:
    """Return the JSON object that was sent; an empty one where nothing was."""
    if not request.can_read_body:
        return {}
    try:
        # Variables may hold any bytes: they travel as surrogates (PEP 383).
        document = json.loads((await request.read()).decode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise unusable(f"got a body that is no JSON ({error})") from error
    if not isinstance(document, dict):
        raise unusable("got a body that is no JSON object, wanted one")
    return document


def text(facts: Mapping[str, Any], field: str) -> str:
    """Return a field that must be text."""
    value = facts.get(field)
    if not isinstance(value, str):
        raise unusable(f"got no text in {field!r}, wanted one")
    return value


def environment(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the caller's environment variables."""
    return texts(facts, "env")


def texts(facts: Mapping[str, Any], field: str) -> dict[str, str]:
    """Return a field that is an object of texts, an empty one where it is not there."""
    given = facts.get(field) or {}
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise unusable(f"got {field!r} that is no object of texts, wanted one")
    return given


def seconds(facts: Mapping[str, Any], field: str = "timeout_s", *, default: float = STOP_TIMEOUT_S) -> float:
    """Return a duration from 0 to a day."""
    value = facts.get(field, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST_S:
        raise unusable(f"got a {field!r} that is no number from 0 to {LONGEST_S}")
    return float(value)


def whole_number(request: web.Request, field: str, *, default: int, lowest: int, highest: int) -> int:
    """Return a number of the query."""
    value = request.query.get(field, str(default))
    if not (value.isascii() and value.isdecimal()) or not lowest <= int(value) <= highest:
        raise unusable(f"got {field}={value[:40]}, wanted {lowest} to {highest}")
    return int(value)


def is_set(request: web.Request, field: str) -> bool:
    """Tell whether a flag of the query is `1`."""
    return request.query.get(field) == "1"


def answer(document: Mapping[str, Any], *, status: int = 200) -> web.Response:
    """Return an answer; every document says its version, 1 where it does not say another one."""
    return web.json_response({"schema_version": 1, **document}, status=status)


def unusable(sentence: str) -> Refused:
    """Return the refusal of a request that makes no sense."""
    return Refused(sentence, code="bad_request", exit_code=USAGE)

"""Which answer a request gets: the case that it names, with or without the usage event it did not ask for.

A case is named by the header `x-kt-case`, or by the model (`<case>` or `<api>/<case>`; what follows an `@` tells calls
apart and names nothing), or else by being the only one for its path. Where several APIs have a `<case>` of that name,
the request's path decides. Pure: takes and gives values.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from kt_cli.demo.wire_case import Case, Expect, Request, Response
from kt_cli.demo.wire_request import WireRequest

CASE_HEADER = "x-kt-case"
CALL_MARK = "@"
"""In a model's name: what follows is the caller's own mark and does not choose the case."""


def asks_for_usage(document: dict[str, Any]) -> bool:
    """Return whether a chat request asks for the usage event at the end of its stream."""
    options = document.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def choose(cases: Sequence[Case], request: WireRequest, document: dict[str, Any]) -> Case:
    """Return the case that `request` names, or a 404 that says which there are."""
    named = request.headers.get(CASE_HEADER, "") or _model(document)
    alike = [case for case in cases if case.request.path == request.path]
    for case in (*alike, *cases):
        if named in (case.name, case.name.partition("/")[2]):
            return case
    return alike[0] if len(alike) == 1 and not named else _unknown(named, cases)


def as_asked(case: Case, *, include_usage: bool) -> Case:
    """Return `case` as the provider would answer it: without the usage event where only a meter would ask for it."""
    if include_usage or case.expect.agent != "usage_event_withheld":
        return case
    kept = case.expect.agent_body
    if kept is None:
        kept = b"".join(event for event in events(case.response.body) if not is_usage_event(event))
    return replace(case, response=replace(case.response, body=kept))


def reported_usage(body: bytes) -> dict[str, Any] | None:
    """Return the last usage object in a plain body, JSON or SSE; None where there is none."""
    whole = _json_object(body)
    found = [whole] if whole is not None else list(_payloads(body))
    for document in reversed(found):
        if isinstance(usage := document.get("usage"), dict):
            return usage
    return None


def events(body: bytes) -> Iterator[bytes]:
    """Yield the SSE events of a plain body, blank line included, so that joined they are the body again."""
    rest = body
    while rest:
        ends = [found + len(gap) for gap in (b"\n\n", b"\r\n\r\n") if (found := rest.find(gap)) >= 0]
        end = min(ends, default=len(rest))
        yield rest[:end]
        rest = rest[end:]


def is_usage_event(event: bytes) -> bool:
    """Return whether an SSE event is the extra one: no choices, and a usage object."""
    document = next(_payloads(event), {})
    return document.get("choices") == [] and isinstance(document.get("usage"), dict)


def models(cases: Iterable[Case]) -> Case:
    """Return the answer to `GET /v1/models`: one model a case."""
    listed = [{"id": case.name, "object": "model", "created": 0, "owned_by": "kt"} for case in cases]
    return _plain_answer("models", 200, {"object": "list", "data": listed})


def _model(document: dict[str, Any]) -> str:
    model = document.get("model")
    return model.partition(CALL_MARK)[0] if isinstance(model, str) else ""


def _unknown(named: str, cases: Sequence[Case]) -> Case:
    message = f"got model or case {named!r}; wanted one of: {', '.join(case.name for case in cases)}"
    return _plain_answer("unknown", 404, {"error": {"message": message, "code": "model_not_found"}})


def _plain_answer(name: str, status: int, document: dict[str, Any]) -> Case:
    response = Response(
        status=status,
        headers={"content-type": "application/json"},
        framing="sized",
        body=json.dumps(document).encode(),
        pieces="whole",
    )
    return Case(
        name=name,
        synthetic=True,
        request=Request(),
        response=response,
        expect=Expect(completeness="unknown", status=status),
    )


def _payloads(body: bytes) -> Iterator[dict[str, Any]]:
    for event in events(body):
        data = b"\n".join(line[5:].strip() for line in event.splitlines() if line.startswith(b"data:"))
        if (document := _json_object(data)) is not None:
            yield document


def _json_object(text: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None

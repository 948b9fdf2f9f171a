"""Every folder in fixtures/wire, sent by a provider process through a real listener, and its row compared.

A new folder is a new test. Each call names a model of its own, by which its row is found.
"""

import http.client
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kt_cli.demo import wire_case
from kt_ledger.values import UNITS

WIRE = Path(__file__).resolve().parents[2] / "fixtures" / "wire"
CASES = wire_case.load_all(WIRE)


@dataclass(frozen=True)
class Received:
    """What the agent got: `clean` says that the message ended as HTTP wants it."""

    status: int
    body: bytes
    clean: bool


def ask(origin: str, case: wire_case.Case, model: str) -> Received:
    """Make the case's request through the listener, byte for byte but for the model's name."""
    listener = urlsplit(origin)
    connection = http.client.HTTPConnection(listener.hostname or "", listener.port, timeout=30)
    headers = {"content-type": "application/json", **case.request.headers, "x-kt-case": case.name}
    connection.request(
        case.request.method, listener.path + case.request.path, renamed(case.request.body, model), headers
    )
    answer = connection.getresponse()
    body, clean = b"", True
    try:
        while data := answer.read1(65536):
            body += data
    except (ConnectionResetError, http.client.IncompleteRead):
        clean = False
    if answer.length:  # read1 takes an early end of a sized body for its end
        clean = False
    connection.close()
    return Received(answer.status, body, clean)


def renamed(body: str, model: str) -> bytes:
    """Return the body with another model; in what is no JSON object, the model that the case marks for it."""
    try:
        document = json.loads(body)
    except ValueError:
        return body.replace("renamed-model", model).encode()
    return json.dumps({**document, "model": model}).encode()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_agent_gets_the_bytes_and_the_ledger_the_row(stage: Any, case: wire_case.Case) -> None:
    model = f"{case.name}@replay"

    received = ask(stage.origin, case, model)
    row = stage.row_of(model)

    assert case.expect.status == received.status
    if case.expect.agent == "reset":
        assert not received.clean
        assert case.agent_body.startswith(received.body)
    else:
        assert received.clean
        assert case.agent_body == received.body
    assert expected(case) == {key: row.get(key) for key in expected(case)}
    assert case.expect.counts == counts(row)


def expected(case: wire_case.Case) -> dict[str, Any]:
    """Return what the row must say; only what the case speaks of."""
    facts: dict[str, Any] = {
        "completeness": case.expect.completeness,
        "reason": case.expect.reason or None,
        "path": case.request.path,
        "method": case.request.method,
        "status": case.expect.status,
        "sent": "yes",
    }
    for key in ("model_answered", "service_tier", "request_id"):
        if getattr(case.expect, key):
            facts[key] = getattr(case.expect, key)
    if case.expect.stream is not None:
        facts["stream"] = case.expect.stream
    return facts


def counts(row: dict[str, Any]) -> dict[str, int]:
    """Return the known units of a row."""
    return {unit: value for unit, value in (row.get("counts") or {}).items() if unit in UNITS}


def test_the_provider_saw_no_call_twice_and_none_without_a_row(stage: Any) -> None:
    """No retry and no call of the gateway's own went to the provider while the cases were replayed."""
    models = [call.model for call in stage.provider.calls() if call.model.endswith("@replay")]

    assert len(models) == len(set(models))
    assert set(models) <= {row["model_asked"] for row in stage.rows()}

"""Hundreds of listeners: what they cost, and that each is served."""

import http.client
import json
import sys
from collections.abc import Callable

import pytest
from tests.gateway.mitm.gateway import Gateway, UnixConnection

from kt_ledger import messages

MANY = 300
LIMIT_BYTES = 120 << 20  # for a gateway with 100 of them
EACH_LIMIT_BYTES = 32 << 10


@pytest.mark.skipif(sys.platform != "linux", reason="reads memory in /proc")
def test_three_hundred_listeners_are_served_and_cost_little(start_gateway: Callable[..., Gateway]) -> None:
    gateway = start_gateway()
    admin = UnixConnection(gateway.files.admin)

    def put(number: int) -> int:
        grants = [{"run_id": f"r-{number}", "token": f"t-{number}"}]
        message = {"name": "a", "port": 0, "upstream": "http://127.0.0.1:9/v1", "grants": grants}
        admin.request("PUT", f"/v1/listeners/i-{number}", json.dumps(message))
        answer = admin.getresponse()
        port: int = json.loads(answer.read())["port"]
        return port

    ports = [put(0)]
    before = gateway.rss_bytes()

    ports += [put(number) for number in range(1, MANY)]

    assert gateway.rss_bytes() < LIMIT_BYTES
    assert (gateway.rss_bytes() - before) / MANY < EACH_LIMIT_BYTES
    assert MANY == len(set(ports)) == len(gateway.ask("GET", "/v1/status")[1]["listeners"])
    assert {204} == {probe(port, number) for number, port in enumerate(ports)}
    assert probe(ports[7], 8) in (401, 404), "a listener let in somebody else's agent"
    admin.close()


def probe(port: int, number: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", f"/t-{number}{messages.PROBE_PATH}")
    status = connection.getresponse().status
    connection.close()
    return status

"""When the journal cannot be written: answers in hand go out, new calls wait, then are refused for good."""

import json
import resource
import threading
from collections.abc import Callable

import pytest
from tests.gateway.mitm.gateway import Gateway, Lane, eventually
from tests.gateway.mitm.provider import COMPLETION, Asked, Wire, always, sized

from kt_ledger import journal

MakeLane = Callable[..., Lane]
StartGateway = Callable[..., Gateway]


def limit_files(gateway: Gateway, size: int) -> None:
    """Let the process write no file beyond `size` bytes, as a full disk would."""
    _, hard = resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (size, hard))


def test_an_answer_in_hand_is_released_and_marked_and_new_calls_wait(
    start_gateway: StartGateway, make_lane: MakeLane
) -> None:
    go_on = threading.Event()

    def gated(_: Asked, wire: Wire) -> bool:
        go_on.wait(20)
        wire.send(sized(COMPLETION))
        return True

    gateway = start_gateway()
    lane = make_lane(gated, on=gateway)
    in_hand = lane.client(lane.post())
    lane.provider.wait_for(1)

    limit_files(gateway, 1)
    go_on.set()
    assert in_hand.answer()[1] == COMPLETION
    assert gateway.ask("GET", "/v1/status")[1]["journal_healthy"] is False
    waiting = lane.client(lane.post())
    eventually(lambda: gateway.ask("GET", "/v1/status")[1]["in_flight"] == 1)
    assert len(lane.provider.log) == 1
    limit_files(gateway, resource.RLIM_INFINITY)

    assert waiting.answer()[1] == COMPLETION
    first, second = lane.wait_records(journal.CLOSE, 2)
    assert (first["unsynced"], first["completeness"]) == (True, "exact")
    assert "unsynced" not in second
    assert first["x"] in {record["x"] for record in lane.records(journal.OPEN)}


@pytest.mark.chaos
@pytest.mark.long
def test_a_call_that_waited_in_vain_is_refused_for_good_and_never_left(
    start_gateway: StartGateway, make_lane: MakeLane
) -> None:
    gateway = start_gateway()
    lane = make_lane(always(sized(COMPLETION)), on=gateway)
    limit_files(gateway, 1)

    head, body = lane.client(lane.post()).answer()

    assert head.startswith(b"HTTP/1.1 403 ")
    assert b"\r\nx-should-retry: false\r\n" in head
    assert json.loads(body)["error"]["code"] == "journal_unavailable"
    assert lane.provider.log == []
    limit_files(gateway, resource.RLIM_INFINITY)
    local = lane.wait_records(journal.LOCAL)[0]
    assert (local["reason"], local["sent"], local["status"]) == ("journal_unavailable", "no", 403)

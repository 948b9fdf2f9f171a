"""A provider that refuses to be asked for usage, through a real gateway process."""

import json
from collections.abc import Callable

import pytest
from tests.gateway.mitm.gateway import Lane
from tests.gateway.mitm.provider import DONE, SSE_HEAD, Asked, Wire, chunks, event

from kt_ledger import journal

MakeLane = Callable[..., Lane]
REFUSAL = (
    b'{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"]}]}}'
)
ASKED = b'{"model":"m-1","stream":true}'


def strict(close: bool) -> Callable[[Asked, Wire], bool]:
    """A provider that knows no stream_options, and keeps the connection or does not."""

    def answer(asked: Asked, wire: Wire) -> bool:
        if b"stream_options" not in asked.body:
            wire.send(SSE_HEAD + chunks(event("a", finish=True), DONE))
            return True
        more = b"connection: close\r\n" if close else b""
        head = b"HTTP/1.1 422 Unprocessable\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%b\r\n"
        wire.send(head % (len(REFUSAL), more))
        wire.send(REFUSAL[:10])
        wire.send(REFUSAL[10:])
        return not close

    return answer


@pytest.mark.parametrize("close", [False, True])
def test_the_request_is_made_once_more_as_it_came_and_has_a_row_of_its_own(
    make_lane: MakeLane, close: bool
) -> None:
    lane = make_lane(strict(close))

    head, body = lane.client(lane.post(ASKED)).answer()

    assert head.startswith(b"HTTP/1.1 200")
    assert event("a", finish=True) + DONE == body
    first, second = lane.wait_records(journal.CLOSE, count=2)
    assert (422, "provider_error", 200, "no_usage") == tuple(
        close[name] for close in (first, second) for name in ("status", "reason")
    )
    assert first["x"] != second["x"]
    opened = lane.records(journal.OPEN)
    assert [True, False] == [record["usage_asked_by_us"] for record in opened]
    assert ASKED == lane.provider.log[1].body


def test_the_next_calls_of_that_model_are_not_asked_and_others_are(make_lane: MakeLane) -> None:
    lane = make_lane(strict(False))
    lane.client(lane.post(ASKED)).answer()

    lane.client(lane.post(ASKED)).answer()
    lane.client(lane.post(ASKED.replace(b"m-1", b"m-2"))).answer()

    asked = ["stream_options" in json.loads(call.body) for call in lane.provider.log]
    assert [True, False, False, True, False] == asked

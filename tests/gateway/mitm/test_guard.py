"""Whatever the exchange does, the agent's bytes come out whole, in order and once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kt_gateway.exchange.exchange import Exchange, Passage, RequestHead
from kt_gateway.mitm.guard import GuardedExchange
from kt_ledger.values import Reason

HEAD = RequestHead(method="POST", path="/v1/chat/completions", query="", headers=())
METHODS = [
    "collected",
    "request_passed",
    "open_fields",
    "sent",
    "response_head",
    "response_data",
    "response_end",
]


class Faulty(Exchange):
    """An exchange that keeps bytes back for a while, and breaks at the n-th call of one method."""

    def __init__(self, method: str, after: int) -> None:
        super().__init__(id="x", instance_id="i", run_id="r", head=HEAD, started_at_ns=1, started_mono_ns=1)
        self._kept = b""
        self._method = method
        self._left = after

    def _maybe(self, method: str) -> None:
        if method == self._method:
            self._left -= 1
            if self._left < 0:
                raise RuntimeError("a fault of ours")

    def collected(self, body: bytes) -> bytes:
        self._maybe("collected")
        return super().collected(body)

    def request_passed(self, count_bytes: int) -> None:
        self._maybe("request_passed")

    def open_fields(self) -> dict[str, Any]:
        self._maybe("open_fields")
        return super().open_fields()

    def sent(self) -> None:
        self._maybe("sent")
        super().sent()

    def response_head(self, **facts: Any) -> None:
        self._maybe("response_head")
        super().response_head(**facts)

    def response_data(self, data: bytes, *, last: bool, mono_ns: int) -> Passage:
        whole = self._kept + data
        self._maybe("response_data")
        keep = 0 if last else len(whole) // 3
        now, self._kept = whole[: len(whole) - keep], whole[len(whole) - keep :]
        return Passage(now)

    def response_end(self, *, mono_ns: int) -> Passage:
        self._maybe("response_end")
        kept, self._kept = self._kept, b""
        self.settled = True
        return Passage(held=kept, settle=True)


@given(
    st.sampled_from([*METHODS, "never"]),
    st.integers(0, 4),
    st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=8),
    st.booleans(),
)
def test_bytes_out_are_bytes_in_whatever_breaks(
    method: str, after: int, pieces: list[bytes], sized: bool
) -> None:
    guarded = GuardedExchange(Faulty(method, after), started_at_ns=1)
    body = guarded.collected(b"{}")
    guarded.request_passed(1)
    guarded.open_fields()
    guarded.sent()
    guarded.response_head(status=200, headers=(), mono_ns=2)

    passages = [
        guarded.response_data(piece, last=sized and number == len(pieces) - 1, mono_ns=3)
        for number, piece in enumerate(pieces)
    ]
    passages.append(guarded.response_end(mono_ns=4))

    assert body == b"{}"
    assert b"".join(passage.now + passage.held for passage in passages) == b"".join(pieces)
    assert [passage.settle for passage in passages].count(True) == 1
    close = guarded.close_fields(at_ns=5, mono_ns=5)
    assert close["x"] == "x"
    if guarded.broken:
        assert (close["completeness"], close["reason"], close["sent"]) == ("unknown", "meter_fault", "yes")
        assert guarded.ended_cleanly


@pytest.mark.parametrize("method", ["response_data", "never"])
def test_a_failure_is_no_clean_end_though_the_meter_broke(method: str) -> None:
    guarded = GuardedExchange(Faulty(method, 0), started_at_ns=1)
    guarded.open_fields()
    guarded.response_data(b"abc", last=False, mono_ns=2)

    guarded.failed(Reason.UPSTREAM_CUT, mono_ns=3)

    assert not guarded.ended_cleanly

import dataclasses
import gzip
import json
import os
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.gateway.exchange.feeding import STARTED_AT_NS, cut, feed, new_exchange, raw_headers

from kt_gateway.decode import chat
from kt_gateway.decode.dialect import Dialect
from kt_gateway.decode.finding import Finding
from kt_gateway.decode.table import DIALECTS
from kt_gateway.exchange.exchange import Exchange, RequestHead
from kt_ledger.journal import CLOSE, OPEN, frame
from kt_ledger.values import Reason

SSE = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}
STREAMED = b'{"model":"m","stream":true}'


def event(**document: Any) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def said(text: str, finish: str | None = None, **more: Any) -> bytes:
    return event(
        id="c-1",
        model="m-1",
        choices=[{"index": 0, "delta": {"content": text}, "finish_reason": finish}],
        **more,
    )


def usage(prompt: int = 9, completion: int = 2, **more: Any) -> bytes:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion}
    return event(id="c-1", model="m-1", choices=[], usage=counts, **more)


DONE = b"data: [DONE]\n\n"
WHOLE_STREAM = said("a") + said("b") + said("", "stop") + usage() + DONE
ANSWER = json.dumps(
    {"id": "c-1", "model": "m-1", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
).encode()


class Flaky:
    """A dialect's reader that fails at its n-th document."""

    def __init__(self, fails_at: int) -> None:
        self.calls = 0
        self.fails_at = fails_at

    def read(self, document: dict[str, Any]) -> Finding:
        self.calls += 1
        if self.calls >= self.fails_at:
            raise RuntimeError("a defect of ours")
        return chat.read(document)


def flaky_dialects(fails_at: int) -> tuple[Dialect, ...]:
    return (dataclasses.replace(DIALECTS[0], read=Flaky(fails_at).read),)


EVENTS = st.sampled_from(
    [
        said("a"),
        said("data: [DONE]\n\n"),
        said("x" * 300),
        said("", "stop"),
        event(choices=[], usage=None),
        event(error={"message": "x"}),
        b": keep-alive\n\n",
        b"\n",
        b"\r\n",
        b"data: null\n\n",
        b"data: {broken\n\n",
        b"event: x\r\ndata: {\r\ndata:}\r\n\r\n",
        b"id: 3\rdata: 5\r\r",
        b"dat",
        b"data: [DO",
        b"\xff\xfe\x00junk",
        b"data: " + b"y" * 70_000 + b"\n\n",
        said("usage with content", usage={"prompt_tokens": 1, "completion_tokens": 1}),
    ]
)
STREAMS = st.lists(EVENTS, max_size=12).map(b"".join)
HEADERS = st.sampled_from([SSE, JSON, {}, {"content-type": "text/plain"}, {"content-type": "text/html"}])
ENDS = st.sampled_from(["clean", "upstream_cut", "client_gone"])


def pieces_of(body: bytes, sizes: list[int]) -> list[bytes]:
    pieces, at, turn = [], 0, 0
    while at < len(body):
        size = sizes[turn % len(sizes)]
        pieces.append(body[at : at + size])
        at, turn = at + size, turn + 1
    return pieces


EXAMPLES = 1000 if "KT_CHAOS" in os.environ else 20

SIZES = st.lists(st.sampled_from([1, 2, 3, 7, 40, 333, 500, 5000]), min_size=1, max_size=6)


@pytest.mark.chaos
@settings(max_examples=EXAMPLES, deadline=None)
@given(STREAMS, SIZES, HEADERS, ENDS, st.booleans(), st.integers(1, 12), st.sampled_from([b"{}", STREAMED]))
def test_bytes_out_are_bytes_in_whatever_the_decoder_does(
    body: bytes,
    sizes: list[int],
    headers: dict[str, str],
    end: str,
    sized: bool,
    fails_at: int,
    request: bytes,
) -> None:
    exchange = new_exchange(dialects=flaky_dialects(fails_at))

    heard = feed(
        exchange, pieces_of(body, sizes), request=request, headers=headers, end=end, marks_last=sized
    )

    assert body == heard.body
    assert heard.settled == 1
    assert (heard.close.get("reason") == "meter_fault") <= (exchange.faults > 0)


@pytest.mark.chaos
@settings(max_examples=EXAMPLES, deadline=None)
@given(
    STREAMS, STREAMS, SIZES, st.sampled_from([usage(), usage().replace(b"\n\n", b"\r\n\r\n"), usage(5, 0)])
)
def test_only_the_event_that_we_caused_is_withheld(
    before: bytes, after: bytes, sizes: list[int], ours: bytes
) -> None:
    # Whole events on both sides, so that ours stays an event of its own.
    before, after = _whole(before), _whole(after)

    heard = feed(new_exchange(), pieces_of(before + ours + after, sizes), request=STREAMED)

    assert before + after == heard.body


def _whole(body: bytes) -> bytes:
    return body.replace(b"dat", b"").replace(b"[DO", b"").replace(b"\xff\xfe\x00junk", b"") + said("z")


@pytest.mark.chaos
@settings(max_examples=EXAMPLES, deadline=None)
@given(STREAMS, SIZES, st.integers(0, 30))
def test_nothing_is_withheld_from_a_coded_answer(body: bytes, sizes: list[int], cut_off: int) -> None:
    coded = gzip.compress(body + usage() + DONE)
    coded = coded[: len(coded) - cut_off]

    heard = feed(
        new_exchange(), pieces_of(coded, sizes), request=STREAMED, headers={**SSE, "content-encoding": "gzip"}
    )

    assert coded == heard.body
    assert heard.settled == 1


@pytest.mark.chaos
@settings(max_examples=EXAMPLES, deadline=None)
@given(SIZES, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.booleans(), st.sampled_from([b"{}", STREAMED]))
@example([1], b"\n", True, STREAMED)
def test_no_byte_of_the_terminal_event_leaves_before_the_record(
    sizes: list[int], newline: bytes, spaced: bool, request: bytes
) -> None:
    body = WHOLE_STREAM.replace(b"\n", newline)
    body = body if spaced else body.replace(b"data: ", b"data:")
    terminal = (DONE if spaced else b"data:[DONE]\n\n").replace(b"\n", newline)

    heard = feed(new_exchange(), pieces_of(body, sizes), request=request)

    assert heard.after == terminal
    assert (
        heard.before == body.removesuffix(terminal)
        if request == b"{}"
        else b"prompt_tokens" not in heard.before
    )


@pytest.mark.parametrize("request_body", [b"{}", STREAMED])
def test_a_terminal_event_that_comes_alone_waits_for_the_record(request_body: bytes) -> None:
    events = [said("a"), said("b"), said("", "stop"), usage(), DONE]

    heard = feed(new_exchange(), events, request=request_body)

    assert heard.after == DONE


def test_a_whole_event_behind_a_long_one_is_read_after_it() -> None:
    long = said("x" * 100_000)

    heard = feed(
        new_exchange(), [said("a"), long[:90_000], long[90_000:] + said("b"), usage(), DONE], request=STREAMED
    )

    assert heard.body == said("a") + long + said("b") + DONE


def test_the_first_reason_for_failing_stays() -> None:
    exchange = new_exchange()
    exchange.failed(Reason.UPSTREAM_CUT, mono_ns=1)

    exchange.failed(Reason.CLIENT_GONE, mono_ns=2)

    assert exchange.close_fields(at_ns=3, mono_ns=3)["reason"] == "upstream_cut"


def test_a_stream_is_passed_on_event_by_event() -> None:
    exchange = new_exchange()
    exchange.collected(STREAMED)
    exchange.sent()
    exchange.response_head(status=200, headers=raw_headers(SSE), mono_ns=1)

    for text in ("a", "b", "c"):
        assert said(text) == exchange.response_data(said(text), last=False, mono_ns=2).now


def test_a_piece_of_an_event_does_not_wait_unless_it_could_be_withheld() -> None:
    unasked = new_exchange()
    unasked.collected(b"{}")
    unasked.response_head(status=200, headers=raw_headers(SSE), mono_ns=1)

    assert said("a")[:20] == unasked.response_data(said("a")[:20], last=False, mono_ns=2).now


def test_bytes_behind_the_terminal_event_pass_after_it_in_order() -> None:
    more = b": bye\n\ndata: [DONE]\n\n"

    at_once = feed(new_exchange(), [WHOLE_STREAM + more])
    later = feed(new_exchange(), [WHOLE_STREAM, more])

    assert DONE + more == at_once.after == later.after


def test_a_terminal_event_in_text_is_text() -> None:
    body = said("data: [DONE]\n\n") + said("[DONE]", "stop")

    heard = feed(new_exchange(), cut(body, "7 bytes"), end="upstream_cut")

    assert heard.close["reason"] == "upstream_cut"
    assert heard.after == b""


def test_the_end_of_a_stream_without_terminal_event_is_held_by_the_message() -> None:
    exchange = new_exchange()
    exchange.collected(b"{}")
    exchange.response_head(status=200, headers=raw_headers(SSE), mono_ns=1)

    data = exchange.response_data(
        said("a", "stop", usage={"prompt_tokens": 1, "completion_tokens": 1}), last=False, mono_ns=2
    )
    end = exchange.response_end(mono_ns=3)

    assert not data.settle
    assert (end.now, end.held, end.settle) == (b"", b"", True)
    assert exchange.ended_cleanly


def test_a_sized_answer_waits_with_its_last_bytes() -> None:
    exchange = new_exchange()
    exchange.collected(b"{}")
    exchange.response_head(status=200, headers=raw_headers(JSON | {"content-length": "9"}), mono_ns=1)

    first = exchange.response_data(ANSWER[:30], last=False, mono_ns=2)
    last = exchange.response_data(ANSWER[30:], last=True, mono_ns=3)

    assert (ANSWER[:30], False) == (first.now, first.settle)
    assert (ANSWER[30:], True) == (last.held, last.settle)


def test_the_last_byte_of_a_sized_stream_that_stops_in_mid_sentence_is_kept_for_the_reset() -> None:
    exchange = new_exchange()
    exchange.collected(b"{}")
    exchange.response_head(status=200, headers=raw_headers(SSE | {"content-length": "9"}), mono_ns=1)

    last = exchange.response_data(said("a"), last=True, mono_ns=2)

    assert (said("a")[:-1], said("a")[-1:], True) == (last.now, last.held, last.settle)
    assert not exchange.ended_cleanly


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/chat/completions"), ("POST", "/v1/files"), ("POST", "/")]
)
def test_a_path_without_a_meter_passes_and_says_so(method: str, path: str) -> None:
    exchange = new_exchange(method=method, path=path)

    heard = feed(exchange, cut(WHOLE_STREAM, "7 bytes"), request=STREAMED, marks_last=True)

    assert heard.body == WHOLE_STREAM
    assert not exchange.metered
    assert not exchange.wants_body
    assert tuple(heard.close[n] for n in ("completeness", "reason", "family")) == (
        "unknown",
        "unmetered_path",
        "unknown",
    )
    assert heard.cleanly


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/chat/completions/", "/openai/deployments/x/chat/completions"]
)
def test_a_path_with_a_meter_is_known_by_its_end(path: str) -> None:
    exchange = new_exchange(path=path)

    assert exchange.metered
    assert exchange.wants_body
    assert exchange.family == "chat.completions"


def test_an_unreachable_provider_is_a_record_of_a_call_that_never_left() -> None:
    exchange = new_exchange(headers={"Content-Type": "application/json", "X-Stainless-Retry-Count": "2"})
    exchange.collected(b'{"model":"m","stream":true,"max_tokens":5,"n":2}')

    passage = exchange.failed(Reason.UPSTREAM_UNREACHABLE, mono_ns=5)
    close = exchange.close_fields(at_ns=STARTED_AT_NS + 5, mono_ns=5)

    assert passage.settle
    assert not exchange.ended_cleanly
    told = {
        "sent": "no",
        "reason": "upstream_unreachable",
        "model": "m",
        "max_tokens": 5,
        "choices": 2,
        "retry_count": 2,
    }
    assert told == {name: close[name] for name in told}
    assert exchange.open_fields().items() <= {**close, "at_ns": STARTED_AT_NS}.items()


def test_what_happens_after_the_record_changes_no_record() -> None:
    exchange = new_exchange()
    feed(exchange, [WHOLE_STREAM], end="client_gone")

    close = exchange.close_fields(at_ns=1, mono_ns=1)

    assert close["completeness"] == "exact"
    assert not exchange.ended_cleanly


def test_a_client_that_leaves_after_usage_but_before_the_end_leaves_a_lower_bound() -> None:
    body = WHOLE_STREAM.removesuffix(DONE)

    heard = feed(new_exchange(), [body], end="client_gone")

    assert tuple(heard.close[name] for name in ("completeness", "reason", "counts")) == (
        "partial",
        "client_gone",
        {"input": 9, "output": 2},
    )
    assert heard.exchange is not None
    assert heard.exchange.finish_seen


def test_one_usage_event_a_choice_is_a_lower_bound() -> None:
    body = said("a", "stop") + usage(9, 8) + said("b", "stop") + usage(9, 8) + DONE

    heard = feed(new_exchange(), [body], request=b'{"stream":true,"n":2}')

    assert (heard.close["completeness"], heard.close["reason"]) == ("partial", "usage_incomplete")
    assert heard.close["counts"] == {"input": 9, "output": 8}
    assert b"usage" not in heard.body


def test_plain_text_that_begins_like_an_event_is_no_cut_stream() -> None:
    heard = feed(new_exchange(), [b"data: tables are below"], headers={"content-type": "text/plain"})

    assert heard.cleanly
    assert heard.close["reason"] == "no_usage"


def test_a_fault_in_reading_the_request_forwards_it_as_it_came() -> None:
    # A header without a value is a defect of the driver; it must not cost the call.
    head = RequestHead("POST", "/v1/chat/completions", "", ((b"content-type", None),))  # type: ignore[arg-type]
    exchange = Exchange(id="x", instance_id="i", run_id=None, head=head, started_at_ns=0, started_mono_ns=0)

    assert exchange.collected(STREAMED) is STREAMED
    heard = feed(exchange, [WHOLE_STREAM], request=STREAMED)

    assert heard.body == WHOLE_STREAM
    assert (heard.close["completeness"], heard.close["reason"]) == ("partial", "meter_fault")


def test_a_fault_in_the_record_leaves_an_unknown_with_its_reason() -> None:
    exchange = new_exchange()
    feed(exchange, [WHOLE_STREAM])
    assert exchange.tally is not None
    exchange.tally.spoke_at_ns = "no time"  # type: ignore[assignment]

    close = exchange.close_fields(at_ns=1, mono_ns=1)

    assert (close["completeness"], close["reason"], close["counts"]) == ("unknown", "meter_fault", {})


def test_a_decoder_that_fails_at_once_leaves_an_unknown_with_its_reason() -> None:
    exchange = new_exchange(dialects=flaky_dialects(1))

    heard = feed(exchange, [WHOLE_STREAM])

    assert (heard.close["completeness"], heard.close["reason"]) == ("unknown", "meter_fault")
    assert heard.cleanly
    assert exchange.faults == 1


def test_the_time_to_the_first_token_ignores_role_frames_and_comments() -> None:
    role = event(id="c", model="m", choices=[{"index": 0, "delta": {"role": "assistant", "content": ""}}])

    heard = feed(new_exchange(), [b": wait\n\n", role, said("a"), said("b"), DONE])

    assert heard.close["first_token_ns"] == 12


def test_a_message_without_stream_has_no_first_token() -> None:
    heard = feed(new_exchange(), [ANSWER], headers=JSON, marks_last=True)

    assert "first_token_ns" not in heard.close
    assert heard.close["stream"] is False
    assert heard.close["latency_ns"] == 2000


def test_records_are_bounded_whatever_the_provider_and_the_agent_send() -> None:
    long = "ü" * 5_000
    many = {f"n{number}": {f"m{inner}": inner for inner in range(20)} for number in range(100)}
    answer = json.dumps(
        {
            "id": long,
            "model": long,
            "service_tier": long,
            "usage": {"prompt_tokens": 1, "completion_tokens": 1} | many,
        }
    ).encode()
    exchange = new_exchange(path="/" + long + "/chat/completions", method="POST")

    heard = feed(
        exchange,
        [answer],
        request=json.dumps({"model": long}).encode(),
        headers=JSON | {"x-request-id": long[:9]},
    )

    assert len(frame(CLOSE, heard.close)) < 64 << 10
    assert len(frame(OPEN, exchange.open_fields())) < 64 << 10
    assert heard.close["counts"] == {"input": 1, "output": 1}


def test_the_request_id_of_the_head_stands_in_for_one_of_the_body() -> None:
    error = feed(new_exchange(), [b"{}"], status=500, headers=JSON | {"X-Request-Id": "req-7"})

    assert error.close["request_id"] == "req-7"


def test_memory_stays_flat_however_long_the_answer() -> None:
    import tracemalloc

    exchange = new_exchange()
    exchange.collected(STREAMED)
    exchange.response_head(status=200, headers=raw_headers(JSON), mono_ns=1)
    exchange.response_data(b'{"choices":[{"message":{"content":"', last=False, mono_ns=1)
    block = b"A" * 65536
    tracemalloc.start()

    for _ in range(320):
        exchange.response_data(block, last=False, mono_ns=1)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    exchange.response_data(b'"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}', last=True, mono_ns=1)

    assert peak_bytes < 2 << 20
    assert exchange.close_fields(at_ns=1, mono_ns=1)["counts"] == {"input": 1, "output": 2}


def test_memory_stays_flat_in_a_stream_that_is_one_event() -> None:
    import tracemalloc

    exchange = new_exchange()
    exchange.collected(STREAMED)
    exchange.response_head(status=200, headers=raw_headers(SSE), mono_ns=1)
    exchange.response_data(
        b'data: {"id":"c","model":"m","choices":[{"delta":{"content":"', last=False, mono_ns=1
    )
    tracemalloc.start()

    for _ in range(320):
        exchange.response_data(b"A" * 65536, last=False, mono_ns=1)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    end = b'"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n'
    passage = exchange.response_data(end, last=False, mono_ns=1)
    exchange.response_end(mono_ns=2)

    assert passage.now == end
    assert peak_bytes < 2 << 20
    close = exchange.close_fields(at_ns=1, mono_ns=1)
    assert (close["completeness"], close["counts"]) == ("exact", {"input": 1, "output": 2})


def test_a_bomb_passes_as_it_came_and_is_given_up() -> None:
    bomb = gzip.compress(b'{"a":"' + bytes(50 << 20))

    heard = feed(new_exchange(), cut(bomb, "random cuts"), headers=JSON | {"content-encoding": "gzip"})

    assert bomb == heard.body
    assert (heard.close["completeness"], heard.close["reason"]) == ("unknown", "too_large")
    assert heard.cleanly


@pytest.mark.parametrize("coding", ["compress", "gzip"])
def test_an_answer_that_cannot_be_decoded_passes_as_it_came(coding: str) -> None:
    heard = feed(new_exchange(), cut(WHOLE_STREAM, "7 bytes"), headers=SSE | {"content-encoding": coding})

    assert heard.body == WHOLE_STREAM
    assert (heard.close["completeness"], heard.close["reason"]) == ("unknown", "undecodable")
    assert heard.cleanly


def test_an_exchange_says_what_it_is_about() -> None:
    exchange: Exchange = new_exchange()

    opened = exchange.open_fields()

    wanted = {
        "x": "x-1",
        "instance": "i-1",
        "run": "r-1",
        "at_ns": STARTED_AT_NS,
        "method": "POST",
        "path": "/v1/chat/completions",
        "family": "chat.completions",
        "request_bytes": 0,
        "usage_asked_by_us": False,
    }
    assert wanted == opened

import json

import pytest

from kt_gateway.decode.table import DIALECTS
from kt_gateway.decode.tally import Tally
from kt_gateway.exchange.sse import EVENT_LIMIT_BYTES
from kt_gateway.exchange.stream import EventStream

SPOKEN = b'data: {"model":"m","choices":[{"delta":{"content":"a"}}]}\n\n'
OURS = b'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n'


def new_stream(*, withhold_usage: bool = True) -> tuple[EventStream, Tally]:
    tally = Tally(DIALECTS[0].shape)
    return EventStream(DIALECTS[0], tally, withhold_usage=withhold_usage), tally


def fed(stream: EventStream, body: bytes, size: int) -> bytes:
    given = b"".join(stream.data(body[at : at + size], mono_ns=1).now for at in range(0, len(body), size))
    return given + stream.end(mono_ns=2)


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_our_event_is_withheld_whole(newline: bytes, size: int) -> None:
    stream, tally = new_stream()
    spoken, ours = (event.replace(b"\n", newline) for event in (SPOKEN, OURS))

    assert fed(stream, spoken + ours + spoken, size) == spoken + spoken
    assert tally.measured is not None


def test_comments_inside_our_event_pass() -> None:
    stream, _ = new_stream()

    assert fed(stream, b": a\n" + OURS, 7) == b": a\n"


@pytest.mark.parametrize(
    "event",
    [
        b'data: {"choices":[{"index":0}],"usage":{"prompt_tokens":1}}\n\n',
        b'data: {"choices":[],"usage":null}\n\n',
        b'data: {"usage":{"prompt_tokens":1}}\n\n',
        b'data: {"choices":null,"usage":{"prompt_tokens":1}}\n\n',
        b'data: [{"choices":[],"usage":{"prompt_tokens":1}}]\n\n',
    ],
)
def test_any_other_event_with_usage_passes(event: bytes) -> None:
    stream, _ = new_stream()

    assert fed(stream, event, 9) == event


def test_an_event_that_may_be_ours_waits_up_to_the_limit_and_then_passes() -> None:
    stream, tally = new_stream()
    padding = b" " * (EVENT_LIMIT_BYTES + 10)
    event = OURS.replace(b'"usage"', padding + b'"usage"')

    assert stream.data(event[:EVENT_LIMIT_BYTES], mono_ns=1).now == b""
    assert stream.data(event[EVENT_LIMIT_BYTES : EVENT_LIMIT_BYTES + 5], mono_ns=1).now
    rest = stream.data(event[EVENT_LIMIT_BYTES + 5 :], mono_ns=1)

    assert rest.now == event[EVENT_LIMIT_BYTES + 5 :]
    assert tally.measured is not None


@pytest.mark.parametrize("size", [999, 65_536, 10**6])
def test_a_long_event_is_read_as_it_passes(size: int) -> None:
    stream, tally = new_stream()
    long = {"model": "m", "choices": [{"delta": {"content": "x" * 200_000}, "finish_reason": "stop"}]}
    long["usage"] = {"prompt_tokens": 1, "completion_tokens": 2}  # type: ignore[assignment]
    body = b": c\ndata: " + json.dumps(long).encode() + b"\n\n"

    assert fed(stream, body + OURS + SPOKEN, size) == body + SPOKEN
    assert (tally.model, tally.finished, tally.spoke_at_ns) == ("m", True, 1)


def test_a_long_event_without_data_passes_and_ends() -> None:
    stream, tally = new_stream()
    comment = b": " + b"x" * 100_000 + b"\n\n"

    assert fed(stream, comment + OURS + SPOKEN, 1000) == comment + SPOKEN
    assert tally.measured is not None


def test_ordinary_events_are_not_parsed_once_the_model_speaks() -> None:
    stream, tally = new_stream()

    fed(stream, SPOKEN + SPOKEN * 10 + b"data: {broken\n\n", 10**6)

    assert tally.documents == 1


@pytest.mark.parametrize("null", [b"null", b" null", b"  null"])
def test_a_null_usage_needs_no_parsing_but_any_other_does(null: bytes) -> None:
    stream, tally = new_stream()
    event = SPOKEN.replace(b'"model"', b'"usage":' + null + b',"model"')

    stream.data(SPOKEN, mono_ns=1)
    stream.data(event, mono_ns=1)
    assert tally.documents == 1
    stream.data(event.replace(b"null", b"{ }"), mono_ns=1)
    assert tally.documents == 2


def test_a_finish_reason_between_lines_of_data_is_seen() -> None:
    stream, tally = new_stream()

    stream.data(SPOKEN, mono_ns=1)
    stream.data(b'data: {"choices":[{"finish_reason"\ndata: :\ndata:  "stop"}]}\n\n', mono_ns=1)

    assert tally.finished


def test_an_error_event_is_known_by_its_type_too() -> None:
    stream, tally = new_stream()

    stream.data(SPOKEN + b'event: error\ndata: {"message":"x"}\n\n', mono_ns=1)

    assert tally.error


def test_what_is_kept_is_counted() -> None:
    stream, _ = new_stream(withhold_usage=False)

    assert stream.data(SPOKEN + b"data: [DO", mono_ns=1).now == SPOKEN
    assert stream.kept_bytes == 9
    assert stream.data(b"G]", mono_ns=1).now == b"data: [DOG]"
    assert stream.kept_bytes == 0

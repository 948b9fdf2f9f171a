from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kt_cli.demo import answer, wire_case
from kt_cli.demo.wire_request import WireRequest

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "wire"
CASES = wire_case.load_all(FIXTURES)
STORY = next(case for case in CASES if case.name == "demo/story")
REQUEST = WireRequest(method="POST", target="/v1/chat/completions?x=1")


@pytest.mark.parametrize(
    ("headers", "document", "expected"),
    [
        ({}, {"model": "demo/story"}, "demo/story"),
        ({}, {"model": "story"}, "demo/story"),
        ({}, {"model": "demo/story@12"}, "demo/story"),
        ({"x-kt-case": "demo/answer"}, {"model": "demo/story"}, "demo/answer"),
        ({}, {"model": "other"}, "unknown"),
        ({}, {"model": 5}, "unknown"),
        ({}, {}, "unknown"),
    ],
)
def test_a_request_names_its_case(headers: dict[str, str], document: dict[str, Any], expected: str) -> None:
    assert expected == answer.choose(CASES, replace(REQUEST, headers=headers), document).name


def test_a_name_that_several_apis_have_is_the_one_of_the_path_asked() -> None:
    messages = WireRequest(method="POST", target="/v1/messages")

    assert "openai-chat/plain-json" == answer.choose(CASES, REQUEST, {"model": "plain-json"}).name
    assert "anthropic-messages/plain-json" == answer.choose(CASES, messages, {"model": "plain-json"}).name


def test_the_only_case_of_a_path_needs_no_name() -> None:
    assert STORY is answer.choose([STORY], REQUEST, {})


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, False),
        ({"stream_options": None}, False),
        ({"stream_options": {"include_usage": 1}}, False),
        ({"stream_options": {"include_usage": False}}, False),
        ({"stream_options": {"include_usage": True}}, True),
    ],
)
def test_only_a_true_asks_for_usage(document: dict[str, Any], expected: bool) -> None:
    assert expected is answer.asks_for_usage(document)


def test_who_does_not_ask_gets_the_bytes_that_an_agent_behind_the_meter_must_get() -> None:
    for case in CASES:
        if case.expect.agent == "usage_event_withheld" and not case.response.encoding:
            assert case.agent_body == answer.as_asked(case, include_usage=False).response.body, case.name


def test_events_joined_are_the_body_again() -> None:
    for case in CASES:
        assert case.response.body == b"".join(answer.events(case.response.body))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", None),
        (b"{", None),
        (b"[]", None),
        (b'{"usage": null}', None),
        (b'{"usage": {"prompt_tokens": 1}}', {"prompt_tokens": 1}),
        (
            b'data: {"usage": {"prompt_tokens": 1}}\n\ndata: {"usage": {"prompt_tokens": 2}}\n\n',
            {"prompt_tokens": 2},
        ),
        (b'data: {"usage": {"prompt_tokens": 1}}\r\n\r\ndata: [DONE]\r\n\r\n', {"prompt_tokens": 1}),
        (b'data: {"usage":\ndata: {"prompt_tokens": 3}}\n\n', {"prompt_tokens": 3}),
    ],
)
def test_the_last_usage_object_is_what_was_reported(body: bytes, expected: Any) -> None:
    assert expected == answer.reported_usage(body)

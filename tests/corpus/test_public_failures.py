"""What other meters got wrong in public, as small inputs with the right answers; the names say the behaviour.

The numbers in `why` are rows of the catalogue that this table was made from; links are in docs/decisions/0143.
"""

import gzip
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.gateway.exchange.feeding import WAYS, Heard, cut, feed, new_exchange

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
RESPONSES = "/v1/responses"
GEMINI = "/v1beta/models/g:generateContent"
SSE = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}
DONE = b"data: [DONE]\n\n"
ASKED = b'{"model":"m","stream":true,"stream_options":{"include_usage":true}}'


def sse(*documents: Any, end: bytes = b"") -> bytes:
    return b"".join(b"data: " + json.dumps(document).encode() + b"\n\n" for document in documents) + end


def named(*documents: dict[str, Any]) -> bytes:
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (document["type"].encode(), json.dumps(document).encode())
        for document in documents
    )


def said(text: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}], **more}


def usage(prompt: Any, completion: Any, total: Any = None, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total, **more}


def only(**more: Any) -> dict[str, Any]:
    return {"choices": [], "usage": usage(10, 3, 13), **more}


def message(start: dict[str, Any], *deltas: dict[str, Any], stop: bool = True) -> bytes:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"model": "c", "usage": start}}]
    events.append({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}})
    events += [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": one} for one in deltas
    ]
    return named(*events, *([{"type": "message_stop"}] if stop else []))


@dataclass(frozen=True, kw_only=True)
class Row:
    """An input and its right answer."""

    why: str
    body: bytes
    counts: dict[str, int]
    path: str = CHAT
    reason: str | None = None
    request: bytes = ASKED
    headers: dict[str, str] = field(default_factory=lambda: SSE)
    end: str = "clean"
    model: str | None = None
    withheld: bytes = b""  # what of the body the agent does not get
    cleanly: bool = True
    status: int = 200


THREE = {"input": 10, "output": 3}
OK = sse(said("a"), said(None, "stop"), only(), end=DONE)

ROWS = {
    # -- usage said more than once
    "two_usage_events_are_one_use": Row(
        why="1: cumulative 13, then 20",
        body=sse(said("a", usage=usage(10, 13)), said(None, "stop", usage=usage(10, 20)), end=DONE),
        counts={"input": 10, "output": 20},
    ),
    "usage_so_far_on_every_chunk_is_never_summed": Row(
        why="2-4: running totals on each delta",
        body=sse(*(said("a", usage=usage(6179, n)) for n in range(1, 60)), said(None, "stop"), end=DONE),
        counts={"input": 6179, "output": 59},
    ),
    "the_last_event_without_choices_is_trusted_over_running_ones": Row(
        why="5: continuous usage differs from the final one",
        body=sse(said("a", usage=usage(4, 1)), said(None, "stop", usage=usage(7, 2)), only(), end=DONE),
        counts=THREE,
    ),
    "a_message_delta_is_cumulative": Row(
        why="6: 1, then 15", path=MESSAGES,
        body=message({"input_tokens": 9, "output_tokens": 1}, {"output_tokens": 15}),
        counts={"input": 9, "output": 15}, model="c",
    ),
    "a_delta_that_repeats_the_input_doubles_nothing": Row(
        why="7", path=MESSAGES,
        body=message(
            {"input_tokens": 27, "cache_read_input_tokens": 5, "output_tokens": 1},
            {"input_tokens": 27, "cache_read_input_tokens": 5, "output_tokens": 15},
        ),
        counts={"input": 27, "cache_read": 5, "output": 15}, model="c",
    ),
    "a_delta_without_input_loses_none": Row(
        why="9", path=MESSAGES,
        body=message({"input_tokens": 27, "output_tokens": 1}, {"output_tokens": 15}),
        counts={"input": 27, "output": 15}, model="c",
    ),
    "zeros_at_the_start_are_replaced": Row(
        why="10", path=MESSAGES,
        body=message({"input_tokens": 0, "output_tokens": 0}, {"input_tokens": 30, "output_tokens": 15}),
        counts={"input": 30, "output": 15}, model="c",
    ),
    "usage_after_null_usage_counts_and_null_after_it_clears_nothing": Row(
        why="14, vm0: a later null wiped what was seen",
        body=sse(said("a", usage=None), only(), said(None, "stop", usage=None), end=DONE),
        counts=THREE,
    ),
    # -- where the usage object stands
    "usage_beside_an_empty_delta_counts_with_its_cache": Row(
        why="15, 16: choices with an empty delta",
        body=sse(
            said("a"),
            {
                "choices": [{"index": 0, "delta": {}}],
                "usage": usage(16111, 8, 16119, prompt_tokens_details={"cached_tokens": 15872}),
            },
            end=sse(said(None, "stop")) + DONE,
        ),
        counts={"input": 239, "cache_read": 15872, "output": 8},
    ),
    "usage_beside_null_content_and_a_finish_reason_counts": Row(
        why="18, 23",
        body=sse(
            said("a"),
            {
                "choices": [{"delta": {"role": "assistant", "content": None}, "finish_reason": "stop"}],
                "usage": usage(10, 3),
            },
            end=DONE,
        ),
        counts=THREE,
    ),
    "a_usage_event_without_choices_at_all_counts": Row(
        why="22", body=sse(said("a", "stop"), {"usage": usage(10, 3, 13)}, end=DONE), counts=THREE
    ),
    "an_event_whose_data_is_null_is_ignored": Row(
        why="25", body=sse(said("a", "stop"), None, only(), end=DONE), counts=THREE
    ),
    "a_gateway_behind_a_gateway_sends_usage_beside_choices": Row(
        why="26", body=sse(said("a"), said("", "stop", usage=usage(2850, 2)), end=DONE),
        counts={"input": 2850, "output": 2},
    ),
    "legacy_completions_end_with_usage_too": Row(
        why="27", path="/v1/completions",
        body=sse({"choices": [{"text": "a", "finish_reason": "stop"}]}, only(), end=DONE), counts=THREE,
    ),
    "usage_under_x_groq_counts_where_there_is_no_other": Row(
        why="28", body=sse(said("a"), said(None, "stop", x_groq={"usage": usage(10, 3)}), end=DONE), counts=THREE
    ),
    "no_part_is_derived_from_a_total_that_is_null_or_zero": Row(
        why="30", headers=JSON,
        body=json.dumps({"choices": [], "usage": usage(10, 5, 0)}).encode(), counts={"input": 10, "output": 5},
    ),
    "chunks_are_not_tokens": Row(
        why="32", body=sse(*(said("a") for _ in range(9)), said(None, "stop"), end=DONE), counts={},
        reason="no_usage",
    ),
    "several_choices_have_one_usage": Row(
        why="33", request=ASKED.replace(b'"m"', b'"m","n":2'),
        body=sse(said("a"), said(None, "stop"), said(None, "stop"), only(), end=DONE), counts=THREE,
    ),
    # -- asking for usage
    "what_only_we_asked_for_is_withheld_and_the_end_is_kept": Row(
        why="39", request=b'{"model":"m","stream":true}', body=OK, counts=THREE, withheld=sse(only())
    ),
    "an_explicit_no_stays_the_agents_wish": Row(
        why="37", request=b'{"model":"m","stream":true,"stream_options":{"include_usage":false}}',
        body=sse(said("a"), said(None, "stop"), end=DONE), counts={}, reason="no_usage",
    ),
    "usage_behind_the_finish_reason_is_waited_for": Row(why="40", body=OK, counts=THREE),
    # -- ends
    "an_agent_that_leaves_before_the_usage_has_a_row": Row(
        why="45, 46, 51", body=sse(said("a"), said("b")), counts={}, reason="client_gone", end="client_gone",
        cleanly=False,
    ),
    "an_explicit_zero_invents_no_tokens": Row(
        why="49", body=sse(said("a"), said(None, "stop", usage=usage(0, 0, 0)), end=DONE), counts={},
        reason="no_usage",
    ),
    "an_agent_that_leaves_before_the_head_has_a_row": Row(
        why="52", body=b"", counts={}, reason="client_gone", end="client_gone", cleanly=False
    ),
    "a_clean_end_without_the_terminal_event_is_a_cut": Row(
        why="53", body=sse(said("a"), said("b")), counts={}, reason="no_terminal_event", cleanly=False
    ),
    "a_clean_end_without_message_stop_is_a_cut": Row(
        why="53", path=MESSAGES, body=message({"input_tokens": 9, "output_tokens": 1}, stop=False),
        counts={"input": 9, "output": 1}, reason="no_terminal_event", cleanly=False, model="c",
    ),
    "a_finish_reason_is_enough_where_no_done_is_sent": Row(
        why="54", body=sse(said("a"), said(None, "stop"), only()), counts=THREE
    ),
    "input_of_the_start_survives_an_abort": Row(
        why="57", path=MESSAGES, body=message({"input_tokens": 500, "output_tokens": 1}, stop=False),
        counts={"input": 500, "output": 1}, reason="upstream_cut", end="upstream_cut", cleanly=False, model="c",
    ),
    "a_coded_stream_whose_trailer_never_comes_is_not_exact": Row(
        why="56", headers={**SSE, "content-encoding": "gzip"},
        body=gzip.compress(sse(said("a"), said("b")))[:-6], counts={}, reason="undecodable",
    ),
    # -- errors inside a 200
    "an_error_event_in_a_200_is_no_success": Row(
        why="59, 65", path=MESSAGES,
        body=message({"input_tokens": 9, "output_tokens": 1}, stop=False)
        + named({"type": "error", "error": {"type": "overloaded_error"}}),
        counts={"input": 9, "output": 1}, reason="error_in_body", model="c",
    ),
    "an_error_in_a_chat_stream_is_seen_in_any_pieces": Row(
        why="61", body=sse(said("a"), {"error": {"message": "x"}}, end=DONE), counts={}, reason="error_in_body"
    ),
    # -- responses
    "an_incomplete_response_has_its_usage": Row(
        why="66", path=RESPONSES,
        body=sse({"type": "response.incomplete", "response": {"usage": {"input_tokens": 64, "output_tokens": 1500}}}),
        counts={"input": 64, "output": 1500},
    ),
    "a_failed_response_with_usage_is_counted_and_said_to_have_failed": Row(
        why="66", path=RESPONSES,
        body=sse(
            {
                "type": "response.failed",
                "response": {
                    "status": "failed",
                    "error": {"code": "x"},
                    "usage": {"input_tokens": 64, "output_tokens": 2},
                },
            }
        ),
        counts={"input": 64, "output": 2}, reason="error_in_body",
    ),
    "usage_nested_in_the_response_is_found": Row(
        why="67", path=RESPONSES,
        body=sse({"type": "response.completed", "response": {"usage": {"input_tokens": 5, "output_tokens": 6}}}),
        counts={"input": 5, "output": 6},
    ),
    "image_tokens_of_a_hosted_tool_are_not_the_models": Row(
        why="70", path=RESPONSES, headers=JSON,
        body=json.dumps(
            {
                "usage": {"input_tokens": 5, "output_tokens": 6, "total_tokens": 11},
                "tool_usage": {"image_gen": {"input_tokens": 70, "output_tokens": 900}},
            }
        ).encode(),
        counts={"input": 5, "output": 6},
    ),
    # -- framing
    "no_space_behind_data_is_needed": Row(why="74", body=OK.replace(b"data: ", b"data:"), counts=THREE),
    "lines_may_end_with_crlf": Row(why="75", body=OK.replace(b"\n", b"\r\n"), counts=THREE),
    "lines_may_end_with_cr": Row(why="75", body=OK.replace(b"\n", b"\r"), counts=THREE),
    "comments_are_passed_and_ignored": Row(
        why="76",
        body=b": OPENROUTER PROCESSING\n\n" + sse(said("a")) + b": ping - 2026\n\n" + sse(said(None, "stop"), only())
        + DONE,
        counts=THREE,
    ),
    "data_over_several_lines_is_one_document": Row(
        why="77",
        body=sse(said("a", "stop")) + b'data: {"choices":[],\ndata: "usage":{"prompt_tokens":10,\r\n'
        b'data:"completion_tokens":3}}\n\n' + DONE,
        counts=THREE,
    ),
    "a_usage_event_without_its_blank_line_counts": Row(
        why="80", body=sse(said("a", "stop")) + sse(only())[:-2], counts=THREE
    ),
    "a_usage_event_cut_in_the_middle_is_said_to_be_missing": Row(
        why="80", body=sse(said("a", "stop")) + sse(only())[:-20], counts={}, reason="no_usage"
    ),
    # -- bodies
    "a_gzip_answer_is_read": Row(
        why="82, 83", headers={**JSON, "content-encoding": "gzip"},
        body=gzip.compress(json.dumps({"model": "m-1", "usage": usage(100, 250, 350)}).encode()),
        counts={"input": 100, "output": 250}, model="m-1",
    ),
    "json_sent_as_an_event_stream_is_read": Row(
        why="104", headers=SSE, body=json.dumps({"usage": usage(10, 3, 13)}).encode(), counts=THREE
    ),
    "an_event_stream_sent_as_json_is_read": Row(why="104", headers=JSON, body=OK, counts=THREE),
    # -- parts and sums
    "cached_tokens_are_counted_once": Row(
        why="90", headers=JSON,
        body=json.dumps({"usage": usage(4814, 10, 4824, prompt_tokens_details={"cached_tokens": 4736})}).encode(),
        counts={"input": 78, "cache_read": 4736, "output": 10},
    ),
    "geminis_prompt_includes_its_cache": Row(
        why="91", path=GEMINI, headers=JSON,
        body=json.dumps(
            {
                "usageMetadata": {
                    "promptTokenCount": 262960,
                    "cachedContentTokenCount": 257955,
                    "candidatesTokenCount": 5,
                    "totalTokenCount": 262965,
                }
            }
        ).encode(),
        counts={"input": 5005, "cache_read": 257955, "output": 5},
    ),
    "anthropics_input_excludes_its_cache": Row(
        why="92", path=MESSAGES, headers=JSON,
        body=json.dumps(
            {
                "usage": {
                    "input_tokens": 3,
                    "cache_creation_input_tokens": 20499,
                    "cache_read_input_tokens": 22851,
                    "output_tokens": 7,
                }
            }
        ).encode(),
        counts={"input": 3, "cache_write_5m": 20499, "cache_read": 22851, "output": 7},
    ),
    "a_mirrored_cache_hit_counts_once_and_a_miss_is_no_write": Row(
        why="94", headers=JSON,
        body=json.dumps(
            {
                "usage": usage(
                    100,
                    5,
                    105,
                    prompt_cache_hit_tokens=64,
                    prompt_cache_miss_tokens=36,
                    prompt_tokens_details={"cached_tokens": 64},
                )
            }
        ).encode(),
        counts={"input": 36, "cache_read": 64, "output": 5},
    ),
    "reasoning_on_top_is_added_where_the_total_shows_it": Row(
        why="95", headers=JSON,
        body=json.dumps(
            {"usage": usage(10120, 1499, 14428, completion_tokens_details={"reasoning_tokens": 2809})}
        ).encode(),
        counts={"input": 10120, "output": 1499, "reasoning": 2809},
    ),
    "geminis_thoughts_are_output": Row(
        why="97", path=GEMINI, headers=JSON,
        body=json.dumps(
            {
                "usageMetadata": {
                    "promptTokenCount": 20,
                    "candidatesTokenCount": 151,
                    "thoughtsTokenCount": 382,
                    "totalTokenCount": 553,
                }
            }
        ).encode(),
        counts={"input": 20, "output": 151, "reasoning": 382},
    ),
    "seconds_of_audio_are_a_unit_of_their_own": Row(
        why="102", path="/v1/audio/transcriptions", headers=JSON,
        body=b'{"text":"a","usage":{"type":"duration","seconds":11}}', counts={"seconds": 11},
    ),
    "subtitles_have_no_usage_and_yet_a_row": Row(
        why="102", path="/v1/audio/transcriptions", headers={"content-type": "text/vtt"},
        body=b"WEBVTT\n\n00:00.000 --> 00:01.000\na\n", counts={}, reason="no_usage",
    ),
    "searches_of_the_provider_are_counted": Row(
        why="103", path=MESSAGES, headers=JSON,
        body=json.dumps(
            {"usage": {"input_tokens": 3, "output_tokens": 7, "server_tool_use": {"web_search_requests": 2}}}
        ).encode(),
        counts={"input": 3, "output": 7, "tool_calls": 2},
    ),
    "embeddings_lack_no_output": Row(
        why="104", path="/v1/embeddings", headers=JSON,
        body=b'{"usage":{"prompt_tokens":8,"total_tokens":8}}', counts={"input": 8},
    ),
    "the_model_that_answered_is_the_one_of_the_start": Row(
        why="106", path=MESSAGES,
        body=message({"input_tokens": 412, "output_tokens": 1}, {"output_tokens": 264}).replace(b'"c"', b'"served"'),
        counts={"input": 412, "output": 264}, model="served",
    ),
    "an_alias_in_the_path_is_not_the_model": Row(
        why="108", path="/openai/deployments/alias/chat/completions", headers=JSON,
        body=b'{"model":"gpt-4o-2024-08-06","usage":{"prompt_tokens":10,"completion_tokens":3}}', counts=THREE,
        model="gpt-4o-2024-08-06",
    ),
}  # fmt: skip


def run(row: Row, way: str) -> Heard:
    exchange = new_exchange(path=row.path)
    pieces = cut(row.body, way, seed=20261201)
    return feed(exchange, pieces, request=row.request, status=row.status, headers=row.headers, end=row.end)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ROWS)
def test_what_others_got_wrong(name: str, way: str) -> None:
    row = ROWS[name]

    heard = run(row, way)

    assert (row.counts, row.reason) == (heard.close["counts"], heard.close.get("reason")), row.why
    assert heard.body == row.body.replace(row.withheld, b"", 1)
    assert (heard.settled, heard.cleanly) == (1, row.cleanly)
    assert row.model is None or row.model == heard.close["model"]


def test_a_poll_repeats_no_usage() -> None:
    """68: GET /responses/{id} was billed on every poll."""
    exchange = new_exchange(method="GET", path="/v1/responses/resp_1")
    body = b'{"id":"resp_1","status":"completed","usage":{"input_tokens":5,"output_tokens":6}}'

    heard = feed(exchange, [body], headers=JSON)

    assert ({}, "unmetered_path") == (heard.close["counts"], heard.close["reason"])


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES, "/v1/embeddings", GEMINI, "/api/chat"])
def test_only_chat_and_completions_are_asked_for_usage(path: str) -> None:
    """35: stream_options in /v1/messages is a 400."""
    exchange = new_exchange(path=path)
    body = b'{"model":"m","stream":true}'

    assert exchange.collected(body) is body


@pytest.mark.parametrize("path", [CHAT, "/openai/deployments/a/chat/completions", "/v1/completions"])
def test_asking_is_decided_by_path_not_by_host(path: str) -> None:
    """41: regional and private hosts were missed."""
    assert b"include_usage" in new_exchange(path=path).collected(b'{"stream":true}')


COSTS = {
    "openrouter_says_what_it_charged": ({"cost": 0.00014, "is_byok": False}, 140_000),
    "a_cost_and_its_details_are_not_added": (
        {"cost": 0.025265, "cost_details": {"upstream_inference_cost": 0.025265}},
        25_265_000,
    ),
    "a_zero_of_a_server_that_knows_no_price_is_none": ({"cost": 0}, None),
    "a_zero_of_openrouter_is_zero": ({"cost": 0, "is_byok": False}, 0),
    "ticks_are_tenths_of_a_nanodollar": ({"cost_in_usd_ticks": 232_856_000}, 23_285_600),
    "perplexity_has_an_object": ({"cost": {"total_cost": 0.00503}}, 5_030_000),
    "digits_are_kept_as_they_were_sent": ({"cost": 1.13e-05, "is_byok": False}, 11_300),
    "half_a_nanodollar_is_rounded_up_once": ({"cost_in_usd_ticks": 5}, 1),
    "text_is_no_cost": ({"cost": "0.1"}, None),
    "less_than_nothing_is_no_cost": ({"cost": -0.1}, None),
    "no_number_is_no_cost": ({"cost": float("nan")}, None),
    "null_is_no_cost": ({"cost": None}, None),
    "true_is_no_cost": ({"cost": True}, None),
}
"""105: provider-reported cost was added to itself, or 0 taken for a price."""


@pytest.mark.parametrize("name", COSTS)
def test_what_a_provider_charged_stands_apart(name: str) -> None:
    more, nanousd = COSTS[name]
    body = json.dumps({"usage": usage(10, 3, 13, **more)}).encode()

    heard = feed(new_exchange(), [body], headers=JSON)

    assert nanousd == heard.close.get("reported_cost_nanousd")
    assert THREE == heard.close["counts"]

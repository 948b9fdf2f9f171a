"""When the model is said to have spoken: at its first word, not at a frame that only announces one."""

from typing import Any

import pytest

from kt_gateway.decode import (
    audio,
    chat,
    cohere,
    completions,
    gemini,
    images,
    jobs,
    messages,
    ollama,
    responses,
)

READERS: list[tuple[Any, dict[str, Any], bool]] = [
    (chat.read, {"choices": [{"delta": {"role": "assistant"}}]}, False),
    (chat.read, {"choices": [{"delta": {"content": "a"}}]}, True),
    (completions.read, {"choices": [{"text": ""}]}, False),
    (completions.read, {"choices": [{"text": "a"}]}, True),
    (responses.read, {"type": "response.created", "response": {}}, False),
    (responses.read, {"type": "response.output_item.added", "item": {}}, False),
    (responses.read, {"type": "response.output_text.delta", "delta": "a"}, True),
    (responses.read, {"type": "error", "message": "a"}, False),
    (messages.read, {"type": "message_start", "message": {}}, False),
    (messages.read, {"type": "content_block_start", "content_block": {}}, False),
    (messages.read, {"type": "ping"}, False),
    (messages.read, {"type": "content_block_delta", "delta": {"text": "a"}}, True),
    (gemini.read, {"candidates": [{"content": {"parts": []}}]}, False),
    (gemini.read, {"candidates": [{"content": {"parts": [{"text": "a"}]}}]}, True),
    (gemini.read_interaction, {"event_type": "step.delta"}, True),
    (
        gemini.read_interaction,
        {"event_type": "interaction.created", "interaction": {"status": "in_progress"}},
        False,
    ),
    (ollama.read, {"message": {"content": ""}}, False),
    (ollama.read, {"message": {"thinking": "a"}}, True),
    (ollama.read, {"response": "a"}, True),
    (cohere.read, {"type": "message-start"}, False),
    (cohere.read, {"type": "content-delta"}, True),
    (cohere.read, {"event_type": "text-generation", "text": "a"}, True),
    (audio.read, {"type": "transcript.text.delta"}, True),
    (images.read, {"type": "image_generation.partial_image"}, True),
    (jobs.read_run, {"object": "thread.message.delta"}, True),
    (jobs.read_run, {"object": "thread.run", "status": "queued"}, False),
]


@pytest.mark.parametrize(("read", "document", "spoke"), READERS)
def test_the_model_speaks(read: Any, document: dict[str, Any], spoke: bool) -> None:
    assert read(document).spoke == spoke


@pytest.mark.parametrize(
    "read", dict.fromkeys(read for read, _, _ in READERS), ids=lambda read: read.__module__
)
@pytest.mark.parametrize("odd", [{}, [], None, 5, "x", True, [{}], {"type": {}}])
def test_no_type_of_any_member_is_too_odd(read: Any, odd: Any) -> None:
    names = (
        "type",
        "event_type",
        "usage",
        "choices",
        "message",
        "response",
        "delta",
        "candidates",
        "status",
        "object",
    )

    read(
        dict.fromkeys((*names, "error", "model", "id", "meta", "usageMetadata", "results", "iterations"), odd)
    )

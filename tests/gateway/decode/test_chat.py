from typing import Any

import pytest

from kt_gateway.decode import chat
from kt_gateway.decode.finding import Finding

USAGE = {"prompt_tokens": 1}


@pytest.mark.parametrize(
    ("document", "finding"),
    [
        ({}, Finding()),
        ({"model": "", "id": "", "choices": []}, Finding()),
        ({"model": 7, "id": ["x"], "service_tier": None}, Finding()),
        (
            {"model": "m", "id": "c", "service_tier": "flex"},
            Finding(model="m", request_id="c", service_tier="flex"),
        ),
        ({"usage": USAGE}, Finding(usage=USAGE)),
        ({"usage": USAGE, "choices": []}, Finding(usage=USAGE, only_usage=True)),
        ({"usage": None, "choices": []}, Finding()),
        ({"usage": [], "choices": []}, Finding()),
        ({"x_groq": {"usage": USAGE}}, Finding(usage_aside=USAGE)),
        ({"x_groq": 5}, Finding()),
        ({"error": {"message": "x"}}, Finding(error=True)),
        ({"error": "x"}, Finding(error=True)),
        ({"error": None}, Finding()),
        ({"object": "error", "message": "x"}, Finding(error=True)),
        ({"type": "error"}, Finding(error=True)),
        ({"choices": [{"finish_reason": "stop"}]}, Finding(finished=True)),
        ({"choices": [{"finish_reason": None}, {"finish_reason": "length"}]}, Finding(finished=True)),
        ({"choices": [{"finish_reason": ""}]}, Finding()),
        ({"choices": [None, 5, "x"]}, Finding()),
        ({"choices": {"finish_reason": "stop"}}, Finding()),
        ({"choices": [{"delta": {"role": "assistant", "content": ""}}]}, Finding()),
        ({"choices": [{"delta": {"content": "a"}}]}, Finding(spoke=True)),
        ({"choices": [{"delta": {"reasoning_content": "a"}}]}, Finding(spoke=True)),
        ({"choices": [{"delta": {"tool_calls": [{}]}}]}, Finding(spoke=True)),
        ({"choices": [{"delta": None, "message": {"content": "a"}}]}, Finding(spoke=True)),
        ({"choices": [{"delta": 5}]}, Finding()),
    ],
)
def test_a_document_says(document: dict[str, Any], finding: Finding) -> None:
    assert chat.read(document) == finding

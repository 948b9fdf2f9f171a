import pytest

from kt_gateway.decode.dialect import Dialect
from kt_gateway.decode.table import DIALECTS, dialect_of


@pytest.mark.parametrize(
    ("method", "path", "family"),
    [
        ("POST", "/v1/chat/completions", "chat.completions"),
        ("POST", "/chat/completions", "chat.completions"),
        ("POST", "/v1/chat/completions/", "chat.completions"),
        ("GET", "/v1/chat/completions", None),
        ("DELETE", "/v1/chat/completions", None),
        ("POST", "/v1/chat/completions/chatcmpl-1", None),
        ("POST", "/v1/completions", "completions"),
        ("POST", "/v1/xchat/completions", "completions"),
        ("post", "/v1/chat/completions", None),
        ("POST", "", None),
    ],
)
def test_method_and_path_decide_the_family(method: str, path: str, family: str | None) -> None:
    dialect = dialect_of(method, path)

    assert (dialect.family if dialect else None) == family


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.family)
def test_every_line_of_the_table_is_reached(dialect: Dialect) -> None:
    between = {
        "/count-tokens": "/model/m",
        "/count-tokens:rawPredict": "/models",
        "/converse": "/model/m",
        "/invoke": "/model/m",
        "/runs": "/threads/t",
    }
    for suffix in dialect.suffixes:
        path = between.get(suffix, "/threads/t/runs/r" if suffix == "/submit_tool_outputs" else "") + suffix
        path = "/prompts/p/completions" if dialect.pattern and suffix == "/completions" else path
        path = "/publishers/anthropic/models/m" + path if suffix.startswith(":") else path

        assert dialect_of("POST", path) is dialect
        assert dialect_of("POST", "/v1" + path) is dialect
        assert dialect_of("POST", "/some/base/v1" + path + "/") is dialect
        assert dialect_of("GET", path) is None


@pytest.mark.parametrize(
    ("path", "family"),
    [
        ("/openai/deployments/my-alias/chat/completions", "chat.completions"),
        ("/openai/deployments/my-alias/embeddings", "embeddings"),
        ("/openai/v1/responses", "responses"),
        ("/v1/prompts/p-1/completions", "chat.completions"),
        ("/v1/fim/completions", "completions"),
        ("/v1/responses/compact", "responses"),
        ("/v1/responses/input_tokens", "count_tokens"),
        ("/v1/responses/resp_1/cancel", None),
        ("/v1/messages/count_tokens", "count_tokens"),
        ("/v1/messages/batches", "batches"),
        ("/v1/batches", "batches"),
        ("/v1beta/models/gemini-x:generateContent", "gemini.generate"),
        ("/v1beta/models/gemini-x:streamGenerateContent", "gemini.generate"),
        ("/v1beta/models/gemini-x:countTokens", "count_tokens"),
        ("/v1/projects/p/locations/l/publishers/google/models/g:generateContent", "gemini.generate"),
        ("/api/chat", "ollama.chat"),
        ("/v2/chat", "cohere.chat"),
        ("/model/a%3A0/converse", "bedrock.converse"),
        ("/model/a%3A0/converse-stream", None),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/c@1:streamRawPredict", "messages"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict", "count_tokens"),
        ("/v1/projects/p/locations/l/publishers/mistralai/models/m:rawPredict", None),
        ("/model/m/count-tokens", "count_tokens"),
        ("/v1/threads/t/messages", None),
        ("/v1/threads/t/runs", "assistants.runs"),
        ("/v1/runs", None),
        ("/v1/files", None),
        ("/v1/realtime/sessions", None),
    ],
)
def test_providers_own_paths_are_known(path: str, family: str | None) -> None:
    dialect = dialect_of("POST", path)

    assert (dialect.family if dialect else None) == family


def test_a_poll_never_meters() -> None:
    assert dialect_of("GET", "/v1/responses/resp_1") is None
    assert dialect_of("GET", "/v1/responses") is None
    assert dialect_of("GET", "/v1/batches/batch_1") is None
    assert dialect_of("GET", "/v1/threads/t/runs/r") is None

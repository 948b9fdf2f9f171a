"""The API families we can meter, one line each; a request's method and path decide. The first that fits is meant."""

from kt_gateway.decode import (
    asides,
    audio,
    bedrock,
    chat,
    cohere,
    completions,
    embeddings,
    gemini,
    images,
    jobs,
    messages,
    ollama,
    responses,
)
from kt_gateway.decode.dialect import Dialect

DIALECTS: tuple[Dialect, ...] = (
    chat.DIALECT,
    responses.DIALECT,
    messages.DIALECT,
    messages.VERTEX,
    gemini.STREAM,
    gemini.GENERATE,
    chat.PROMPTS,
    completions.DIALECT,
    ollama.CHAT,
    ollama.GENERATE,
    ollama.EMBED,
    embeddings.EMBEDDINGS,
    audio.TRANSCRIPTION,
    audio.SPEECH,
    images.DIALECT,
    asides.MODERATIONS,
    asides.COUNT_MESSAGES,
    asides.COUNT_RESPONSES,
    asides.COUNT_GEMINI,
    asides.COUNT_ELSEWHERE,
    gemini.EMBED,
    gemini.INTERACTIONS,
    gemini.CACHED,
    bedrock.CONVERSE,
    bedrock.INVOKE,
    jobs.RUNS,
    jobs.MESSAGE_BATCHES,
    jobs.BATCHES,
    embeddings.RERANK,
    cohere.CHAT,
    cohere.GENERATE,
    cohere.EMBED,
)

UNKNOWN_FAMILY = "unknown"


def dialect_of(method: str, path: str, *, dialects: tuple[Dialect, ...] = DIALECTS) -> Dialect | None:
    """Return the dialect of a request, None where its usage cannot be read (GETs of stored answers included)."""
    bare = path.rstrip("/")
    for dialect in dialects:
        if method == dialect.method and bare.endswith(dialect.suffixes) and _fits(dialect, bare):
            return dialect
    return None


def _fits(dialect: Dialect, path: str) -> bool:
    return dialect.pattern is None or dialect.pattern.search(path) is not None

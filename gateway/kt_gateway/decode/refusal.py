"""What each dialect takes for a final no: status and body, so that an agent stops instead of trying again.

Measured on real agents (docs/decisions/0043): chat completions stop at 403, Responses at 429 `insufficient_quota`,
Messages and Gemini at 403; always with `x-should-retry: false` and without Retry-After.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Refused:
    """A status and a JSON body."""

    status: int
    body: dict[str, Any]


def openai(code: str, message: str) -> Refused:
    """Return a refusal in the words of OpenAI's chat, embeddings, audio and image APIs."""
    return Refused(403, {"error": {"message": message, "type": "kt_gateway", "param": None, "code": code}})


def responses(code: str, message: str) -> Refused:
    """Return a refusal in the words of OpenAI's Responses API."""
    words = {"message": message, "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}
    return Refused(429, {"error": {**words, "reason": code}})


def messages(code: str, message: str) -> Refused:
    """Return a refusal in the words of Anthropic's API."""
    error = {"type": "permission_error", "message": message, "reason": code}
    return Refused(403, {"type": "error", "error": error})


def google(code: str, message: str) -> Refused:
    """Return a refusal in the words of Google's APIs (google.rpc.Status, https://google.aip.dev/193)."""
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code, "domain": "kt_gateway"}
    return Refused(
        403, {"error": {"code": 403, "message": message, "status": "PERMISSION_DENIED", "details": [info]}}
    )


def ollama(code: str, message: str) -> Refused:
    """Return a refusal in the words of Ollama's own API: a bare string."""
    return Refused(403, {"error": message, "reason": code})


def plain(code: str, message: str) -> Refused:
    """Return a refusal in the words of APIs whose errors are one message (Cohere, Amazon Bedrock)."""
    return Refused(403, {"message": message, "reason": code})

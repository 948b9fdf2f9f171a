"""What answers about audio say: transcriptions in tokens or seconds, speech in characters (or tokens, when streamed).

An answer in text, srt or vtt reports nothing. Speech is bytes: its price follows the characters of the request, which
are counted there; a stream of speech reports tokens in its last event.
Source: https://rubydoc.info/github/openai/openai-ruby/OpenAI/Models/Audio/TranscriptionVerbose/Usage and what is near
it, generated from OpenAI's specification (read 2026-12-01); Mistral's transcriptions, recorded, report chat's usage
with `prompt_audio_seconds`.
"""

from typing import Any

from kt_gateway.decode import chat, cost
from kt_gateway.decode.dialect import Asks, Dialect, Telling
from kt_gateway.decode.finding import Finding, member, text, word
from kt_gateway.decode.shape import Shape

TRANSCRIPTION_SHAPE = Shape(
    input=(("input_tokens",), ("prompt_tokens",)),
    output=(("output_tokens",), ("completion_tokens",)),
    total=(("total_tokens",),),
    audio_input=(("input_token_details", "audio_tokens"), ("input_tokens_details", "audio_tokens")),
    seconds=(("seconds",), ("prompt_audio_seconds",)),
    cost=cost.OPENAI_SHAPED,
)
SPEECH_SHAPE = Shape(
    input=(("input_tokens",),),
    output=(("output_tokens",),),
    total=(("total_tokens",),),
    bare_output="audio_output",
    cost=cost.OPENAI_SHAPED,
)

_MEMBERS = frozenset({"usage", "type", "model", "error"})
_ENDS = frozenset({"transcript.text.done", "transcription.done", "speech.audio.done"})
_SPOKE = frozenset({"transcript.text.delta", "transcript.text.segment", "speech.audio.delta"})


def read(document: dict[str, Any]) -> Finding:
    """Return what one event or one whole answer says."""
    kind = word(document.get("type"))
    return Finding(
        usage=member(document, "usage"),
        model=text(document.get("model")),
        error=chat.failed(document),
        finished=kind in _ENDS,
        spoke=kind in _SPOKE,
        terminal=kind in _ENDS,
    )


_TELLING = Telling("usage", words=tuple(kind.encode() for kind in sorted(_ENDS)))

TRANSCRIPTION = Dialect(
    family="audio.transcriptions",
    suffixes=("/audio/transcriptions", "/audio/translations"),
    read=read,
    shape=TRANSCRIPTION_SHAPE,
    members=_MEMBERS,
    typed_terminal=True,
    telling=_TELLING,
)
SPEECH = Dialect(
    family="audio.speech",
    suffixes=("/audio/speech",),
    read=read,
    shape=SPEECH_SHAPE,
    members=_MEMBERS,
    asks=Asks(characters=("input",)),
    typed_terminal=True,
    telling=_TELLING,
)

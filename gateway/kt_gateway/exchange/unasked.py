"""Models that refuse to be asked for usage, remembered for a day, and how such a refusal is known.

Some providers refuse a request because of `stream_options` (Mistral: 422 `extra_forbidden`; strict servers: 400). What
we added is taken back and the call made once more, as a call of its own; the next ones are not asked in the first
place. Source: https://github.com/openai/openai-agents-python/issues/442 (read 2026-12-01) has such an answer.
"""

from collections import OrderedDict

from kt_gateway import coding

STATUSES = frozenset({400, 422})
BODY_LIMIT_BYTES = 64 << 10
"""A longer answer is no refusal of an option."""

REMEMBERED_NS = 24 * 3600 * 10**9
_MODELS = 1000
_NAMES = (b"stream_options", b"include_usage")


class Unasked:
    """Which models of which providers are not asked for usage."""

    def __init__(self) -> None:
        self._until_ns: OrderedDict[tuple[bytes, str | None], int] = OrderedDict()

    def note(self, upstream: bytes, model: str | None, *, mono_ns: int) -> None:
        """Remember that a model of a provider refused to be asked."""
        self._until_ns[upstream, model] = mono_ns + REMEMBERED_NS
        self._until_ns.move_to_end((upstream, model))
        while len(self._until_ns) > _MODELS:
            self._until_ns.popitem(last=False)

    def knows(self, upstream: bytes, model: str | None, *, mono_ns: int) -> bool:
        """Whether a model refused within the last day."""
        return mono_ns < self._until_ns.get((upstream, model), 0)


def names_the_option(body: bytes, *, content_encoding: str) -> bool:
    """Whether the body of an error names what we asked for."""
    try:
        plain = coding.whole(body, content_encoding=content_encoding, limit_bytes=BODY_LIMIT_BYTES)
    except (coding.Undecodable, coding.TooMuch):
        return False
    return any(name in plain for name in _NAMES)

"""Paths: what the agent asks for below its base URL, as a path at the provider; and tricks that must not get through.

The agent sees `/<token>` + the upstream's own paths. Where the upstream's path ends in `/v1`, clients that add it
twice as well as those that leave it out are understood. Anything else below the token is a probe.
"""

import re
from urllib.parse import unquote_to_bytes

API_ROOTS = frozenset(
    {
        b"audio",
        b"batches",
        b"chat",
        b"completions",
        b"embeddings",
        b"files",
        b"fine_tuning",
        b"images",
        b"messages",
        b"models",
        b"moderations",
        b"realtime",
        b"rerank",
        b"responses",
        b"uploads",
        b"vector_stores",
    }
)
"""First segments of the OpenAI and Anthropic APIs below `/v1`: understood without it (reference of real agents)."""

VERSION = b"/v1"
_SUSPICIOUS = re.compile(rb"%|\\|/\.|\.\.")
_DECODE_ROUNDS = 3


def is_sly(path: bytes) -> bool:
    """Whether some server could read `path` as another one: dot segments, however encoded, and controls.

    An encoded slash alone is none: names of models have slashes.
    """
    if _SUSPICIOUS.search(path) is None:
        return False
    seen = path
    for _ in range(_DECODE_ROUNDS):
        if _has_dot_segment(seen):
            return True
        decoded = unquote_to_bytes(seen)
        if decoded == seen:
            return False
        if any(byte < 0x20 or byte == 0x7F for byte in decoded):
            return True
        seen = decoded
    return True


def at_upstream(path: bytes, prefix: bytes) -> bytes | None:
    """Return the provider's path for `path` (the token already taken off); None for one outside of its base.

    Args:
        path: begins with a slash, or is empty.
        prefix: the path of the upstream's URL, without a trailing slash; empty for an upstream at the root.
    """
    if path == prefix or path.startswith(prefix + b"/"):
        return path or b"/"
    if not prefix.endswith(VERSION):
        return None
    if path.startswith(VERSION + b"/"):
        return prefix.removesuffix(VERSION) + path
    if path.split(b"/", 2)[1:2] and path.split(b"/", 2)[1] in API_ROOTS:
        return prefix + path
    return None


def _has_dot_segment(path: bytes) -> bool:
    # "..;x" is a dot segment to servers that strip path parameters.
    return any(segment.split(b";", 1)[0] in (b".", b"..") for segment in re.split(rb"[/\\]", path))

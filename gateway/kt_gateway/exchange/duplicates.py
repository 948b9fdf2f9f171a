"""Whether a JSON document names a member of one object twice, asked only of documents that report usage.

RFC 8259 leaves open which of them counts, so a usage object that does so cannot be exact. Counting names in the bytes
is cheap and rules nearly all documents out; only what is left is parsed once more.
"""

import json
from typing import Any

from kt_gateway.decode.shape import Shape


class _Repeated(ValueError):
    """A member was named twice."""


def repeats(data: bytes, shape: Shape) -> bool:
    """Whether some object in a JSON text that reports usage names a member twice."""
    for name in shape.names:
        if data.count(name) > 1:
            return _names_twice(data)
    return False


def _names_twice(data: bytes) -> bool:
    try:
        json.loads(data, object_pairs_hook=_once)
    except _Repeated:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Repeated
    return found

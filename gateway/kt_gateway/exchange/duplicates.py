"""Whether a JSON document names a member of one object twice, asked only of documents that report usage.

RFC 8259 leaves open which of them counts, so a usage object that does so cannot be exact. Counting names in the bytes
is cheap and rules nearly all documents out; only what is left is parsed once more.
"""

import json
from typing import Any

from kt_gateway.decode.shape import Shape


class _Repeated(ValueError):
    """A member was named twice."""


def suspicious(shape: Shape) -> tuple[bytes, ...]:
    """Return the quoted names of a dialect's sums: what a document that repeats itself has twice."""
    names = {path[-1] for paths in (shape.input, shape.output, shape.total) for path in paths}
    return tuple(sorted(b'"%b"' % name.encode() for name in names | {"usage"}))


def repeats(data: bytes, names: tuple[bytes, ...]) -> bool:
    """Whether some object in a JSON text names a member twice; `names` as given by `suspicious`."""
    if not any(data.count(name) > 1 for name in names):
        return False
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

"""Identifiers: UUIDv7 (RFC 9562 section 5.7), sortable by the time of their making.

Both the clock and the randomness are arguments.
"""

import os
import uuid
from collections.abc import Callable

from kt_ledger import clock


def new_id(*, wall: clock.Clock | None = None, randomness: Callable[[int], bytes] = os.urandom) -> str:
    """Return a UUIDv7 as text: 48 bits of milliseconds, then 74 random bits."""
    milliseconds = (wall or clock.SystemClock()).wall_ns() // 1_000_000
    random_bits = int.from_bytes(randomness(10))
    value = (milliseconds & (2**48 - 1)) << 80
    value |= 0x7 << 76
    value |= (random_bits >> 62 & 0xFFF) << 64
    value |= 0b10 << 62
    value |= random_bits & (2**62 - 1)
    return str(uuid.UUID(int=value))

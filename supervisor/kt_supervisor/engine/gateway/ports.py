"""Ports of listeners: a block for each state directory, outside of the range of outgoing calls."""

import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

FIRST = 20_000
LAST = 31_999
BLOCK = 200
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def ephemeral() -> range:
    """Return the ports that the kernel gives to outgoing calls; Linux's default where it does not say (ip(7))."""
    try:
        low, high = map(int, _RANGE.read_text().split())
    except (OSError, ValueError):
        low, high = 32768, 60999
    return range(low, high + 1)


def candidates(state_dir: Path, *, taken: Collection[int], outgoing: range) -> Iterator[int]:
    """Yield ports in the order in which they should be tried: the directory's own block, then the blocks behind it.

    Args:
        state_dir: decides the block, so that two directories seldom want the same port.
        taken: ports of other instances.
        outgoing: never offered, unless it leaves nothing else.
    """
    everything = range(FIRST, LAST + 1)
    begin = FIRST + zlib.crc32(str(state_dir).encode()) % (len(everything) // BLOCK) * BLOCK
    ordered = [*range(begin, LAST + 1), *range(FIRST, begin)]
    usable = [port for port in ordered if port not in outgoing] or ordered
    yield from (port for port in usable if port not in taken)

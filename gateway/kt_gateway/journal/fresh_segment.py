"""A segment that begins with everything that is not known to be durable: what a journal goes on with after a failure.

Prepared under a name that readers do not look for, and durable before it is revealed. Attempts may overlap (one may
hang in a sync for good): each has a name of its own, and a number that a later attempt finds taken is not used again.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from kt_gateway.journal.segment import Segment, sync_folder
from kt_ledger import layout


def begin(
    folder: Path,
    current: int,
    attempt: int,
    frames: Callable[[int], Iterable[bytes]],
    *,
    sync: Callable[[int], None],
    is_wanted: Callable[[], bool],
) -> Segment | None:
    """Return a fresh segment that is durable and named; None where that failed, and nothing is left of it.

    Args:
        folder: the journal's.
        current: the number of the segment that it follows.
        attempt: a number that no other attempt has.
        frames: what a segment of a given number begins with.
        sync: makes a descriptor's file durable; may hang.
        is_wanted: whether, when the file is durable, it is still wanted.
    """
    number = next_number(folder, current)
    made: Segment | None = None
    try:
        made = Segment(folder, number, hidden_as=f".{number:06d}.attempt-{attempt}")
        for data in frames(number):
            made.write(data)
        sync(made.descriptor)
        if not is_wanted():
            drop(made)
            return None
        made.reveal()
        sync_folder(folder)
    except OSError:
        if made is not None:
            drop(made)
        return None
    return made


def drop(segment: Segment) -> None:
    """Close a segment that is not used, and remove its file."""
    segment.close()
    segment.path.unlink(missing_ok=True)


def next_number(folder: Path, current: int) -> int:
    """Return the number behind the current segment and behind any that an abandoned attempt has revealed."""
    number = current + 1
    while os.path.lexists(layout.journal_segment(folder, number)):
        number += 1
    return number

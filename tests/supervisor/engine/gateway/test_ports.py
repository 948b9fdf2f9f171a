from itertools import islice
from pathlib import Path

from kt_supervisor.engine.gateway import ports


def test_a_directory_begins_in_its_own_block_and_stays_outside_of_outgoing_ports() -> None:
    outgoing = range(25_000, 61_000)

    found = list(ports.candidates(Path("/a"), taken=(), outgoing=outgoing))

    assert list(range(found[0], found[0] + 50)) == found[:50]
    assert not set(found) & set(outgoing)
    assert 5_000 == len(found)


def test_taken_ports_are_not_offered_and_the_same_directory_asks_for_the_same_ones() -> None:
    first, second = islice(ports.candidates(Path("/a"), taken=(), outgoing=range(0)), 2)

    assert second == next(ports.candidates(Path("/a"), taken={first}, outgoing=range(0)))


def test_a_system_whose_outgoing_range_is_everything_still_gets_ports() -> None:
    assert next(ports.candidates(Path("/a"), taken=(), outgoing=range(1, 65_536)))


def test_the_kernels_range_is_read() -> None:
    outgoing = ports.ephemeral()

    assert 0 < outgoing.start < outgoing.stop <= 65_536

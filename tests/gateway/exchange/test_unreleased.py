from hypothesis import given
from hypothesis import strategies as st

from kt_gateway.exchange.unreleased import TRIM_BYTES, Unreleased


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=5), st.integers(0, 12))))
def test_the_last_bytes_are_the_end_of_the_stream(steps: list[tuple[bytes, int]]) -> None:
    unreleased, stream, kept = Unreleased(), b"", 0

    for data, wish in steps:
        stream += data
        kept = min(wish, kept + len(data))
        unreleased.note(data, kept)

        assert unreleased.last() == (stream[-kept:] if kept else b"")


def test_a_long_stream_that_is_never_quite_released_is_not_kept() -> None:
    unreleased = Unreleased()

    for number in range(3 * TRIM_BYTES // 1000):
        unreleased.note(b"%1000d" % number, 3)

    assert unreleased.last() == b"785"
    assert sum(map(len, unreleased._pieces)) <= TRIM_BYTES + 1000

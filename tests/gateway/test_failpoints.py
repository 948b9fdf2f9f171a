"""The switches: known names only, nothing at all when unset."""

import pytest

from kt_gateway import failpoints


def test_nothing_is_armed_in_normal_life() -> None:
    assert failpoints.ARMED is None
    assert failpoints.parse("") is None
    assert failpoints.slow_sync_s() == 0


@pytest.mark.parametrize("text", ["nowhere", "mid_stream:0", "mid_stream:x", ":1", "mid_stream:-1"])
def test_what_is_not_a_failpoint_is_refused_with_the_names(text: str) -> None:
    with pytest.raises(failpoints.FailpointUnknown, match="before_open_record"):
        failpoints.parse(text)


def test_other_points_and_earlier_hits_do_nothing() -> None:
    point = failpoints.parse("mid_stream:3")

    assert point is not None
    point.hit("after_open_record")
    point.hit("mid_stream")
    point.hit("mid_stream")
    assert point.left == 1

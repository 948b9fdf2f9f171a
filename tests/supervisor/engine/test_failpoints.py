"""The points at which a test lets an engine die: nothing in normal life. `test_removal.py` has it die at each."""

import pytest

from kt_supervisor.engine import failpoints


def test_nothing_happens_where_nobody_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KT_ENGINE_FAILPOINT", "removal_kept:bot")

    others = failpoints.POINTS - {"removal_kept"}

    assert all(failpoints.reached(point, "bot") is None for point in others)
    assert failpoints.reached("removal_kept", "another") is None


def test_a_point_without_a_name_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="nowhere"):
        failpoints.reached("nowhere", "bot")

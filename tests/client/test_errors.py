import pytest

from kt_client import errors


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError(2, "No such file"), errors.EngineAway),
        (ConnectionRefusedError(111, "refused"), errors.EngineAway),
        (PermissionError(13, "Permission denied"), errors.KtError),
    ],
)
def test_nobody_there_is_told_from_a_door_that_is_shut(error: OSError, kind: type[Exception]) -> None:
    told = errors.unreachable(error, "/state/engine.sock")

    assert kind is type(told)
    assert "/state/engine.sock" in str(told) and "wanted" in str(told)


def test_a_late_answer_is_told_from_one_that_was_cut() -> None:
    assert errors.EngineLate is type(errors.lost(TimeoutError()))
    assert errors.EngineLost is type(errors.lost(OSError("it ended")))
    assert all(
        "may have been done" in " ".join(str(errors.lost(e)).split()) for e in (TimeoutError(), OSError())
    )

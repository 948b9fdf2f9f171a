from pathlib import Path

import pytest

from kt_client import asking
from kt_client.errors import EngineAway, EngineLate, EngineLost, KtError, NotFound
from kt_client.wire import Request
from kt_ledger.layout import StateLayout

LOST, AWAY, LATE, REFUSED = EngineLost("cut"), EngineAway("away"), EngineLate("late"), KtError("no")


@pytest.mark.parametrize(
    ("method", "error", "expected"),
    [
        ("GET", AWAY, True),
        ("POST", AWAY, True),
        ("GET", LOST, True),
        ("POST", LOST, False),
        ("DELETE", LOST, False),
        ("GET", LATE, False),
        ("GET", REFUSED, False),
    ],
)
def test_an_order_is_never_given_twice(method: str, error: KtError, expected: bool) -> None:
    assert expected is asking.is_asked_again(Request(method=method, target="/v1/x"), error)


def test_in_an_unused_place_every_name_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="never used") as caught:
        asking.without_engine(
            Request(method="GET", target="/v1/agents/x", about="x"), StateLayout(tmp_path / "none")
        )

    assert 3 == caught.value.exit_code
    assert not (tmp_path / "none").exists()


def test_in_a_used_place_the_engine_is_asked(tmp_path: Path) -> None:
    files = StateLayout(tmp_path)
    files.database.touch()

    assert asking.without_engine(Request(method="GET", target="/v1/agents/x", about="x"), files) is None
    assert asking.without_engine(Request(method="GET", target="/v1/agents", unused={}), files) is None

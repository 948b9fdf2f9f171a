import pytest

from kt_supervisor.engine.output.positions import Place, Position, PositionUnreadable


def test_a_position_reads_back_from_its_text() -> None:
    position = Position(3, Place(2, 77), Place(1, 5), 12)

    assert position == Position.parse(str(position))


def test_texts_order_as_positions_do() -> None:
    positions = [
        Position(),
        Position(1, Place(1, 9), Place(), 1),
        Position(1, Place(1, 10), Place(), 1),
        Position(1, Place(1, 10), Place(1, 4), 1),
        Position(1, Place(2, 0), Place(1, 4), 2),
        Position(2, Place(), Place(), 2),
    ]

    assert sorted(positions) == positions
    assert sorted(map(str, positions)) == [str(position) for position in positions]


@pytest.mark.parametrize(
    "text", ["", "1", "1.2.3.4.5", "a.1.1.1.1.1", "1.1.1.1.1.1.1", "-1.1.1.1.1.1", "٣.1.1.1.1.1"]
)
def test_other_texts_are_refused_with_exit_code_two(text: str) -> None:
    with pytest.raises(PositionUnreadable) as refused:
        Position.parse(text)

    assert 2 == refused.value.exit_code

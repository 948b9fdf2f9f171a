import pytest

from kt_gateway.decode.finding import TEXT_LIMIT, text


@pytest.mark.parametrize(
    ("value", "kept"),
    [("m", "m"), ("", None), (None, None), (7, None), (["m"], None), ("x" * 1000, "x" * TEXT_LIMIT)],
)
def test_only_text_is_kept_and_not_all_of_it(value: object, kept: str | None) -> None:
    assert text(value) == kept

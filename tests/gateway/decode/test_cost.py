from hypothesis import given
from hypothesis import strategies as st

from kt_gateway.decode import cost
from kt_gateway.decode.shape import Cost

ONE = (Cost(path=("cost",), proof=(("is_byok",),)),)


def test_the_first_place_that_tells_a_cost_counts() -> None:
    usage = {"cost": None, "cost_in_usd_ticks": 20}

    assert cost.reported(usage, cost.OPENAI_SHAPED) == 2


def test_a_dialect_without_costs_has_none() -> None:
    assert cost.reported({"cost": 1}, ()) is None


def test_a_cost_beyond_all_reason_is_none() -> None:
    assert cost.reported({"cost": 1e300}, ONE) is None
    assert cost.reported({"cost": 10**30}, ONE) is None


@given(st.decimals(0, 10_000, places=9, allow_nan=False, allow_infinity=False))
def test_nine_digits_are_exact(dollars: object) -> None:
    written = float(str(dollars))

    nanousd = cost.reported({"cost": written, "is_byok": False}, ONE)

    assert nanousd == round(float(str(dollars)) * 10**9)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda x: st.lists(x),
        max_leaves=3,
    )
)
def test_whatever_it_is_nothing_is_raised(value: object) -> None:
    nanousd = cost.reported({"cost": value}, cost.OPENAI_SHAPED)

    assert nanousd is None or nanousd >= 0

import pytest
from tests.gateway.exchange.feeding import feed, new_exchange


@pytest.mark.parametrize(
    ("value", "count"), [("0", 0), ("2", 2), ("-1", None), ("x", None), ("", None), ("1000000", None)]
)
def test_the_retry_count_is_a_small_number_or_unknown(value: str, count: int | None) -> None:
    exchange = new_exchange(headers={"X-Stainless-Retry-Count": value})

    assert exchange.open_fields().get("retry_count") == count


def test_a_close_record_stands_alone() -> None:
    exchange = new_exchange()

    close = feed(exchange, [b"{}"], headers={"content-type": "application/json"}).close

    alone = {
        "x",
        "instance",
        "run",
        "opened_at_ns",
        "method",
        "path",
        "family",
        "at_ns",
        "completeness",
        "counts",
    }
    assert alone | {"request_bytes", "response_bytes", "latency_ns", "sent", "status"} <= set(close)
    assert close["sent"] == "yes"
    assert "usage_asked_by_us" not in close


def test_unknown_fields_are_left_out() -> None:
    close = feed(new_exchange(), [b"{}"], headers={"content-type": "application/json"}).close

    assert not [name for name, value in close.items() if value is None]

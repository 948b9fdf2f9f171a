from typing import Any


def test_stopping_everything_ends_a_gateway_that_is_only_just_starting(house: Any) -> None:
    house.register("bot", "import time\ntime.sleep(600)", observe=True)
    house.set("bot", "metering.upstream_base_url", "http://127.0.0.1:9/v1")
    house.stop_engine()
    house.end_gateway()
    house.boot()  # it wants a gateway for the listener, and begins to start one

    engine = house.engine_pid()
    house.ask("POST", "/v1/engine/stop", {"all": True})
    house.until(lambda: house.is_gone(engine), "the engine has ended")

    house.reap()
    assert [] == house.processes()

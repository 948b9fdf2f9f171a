from typing import Any

import pytest


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("GET", "/v1/nothing", None),
        ("PATCH", "/v1/agents", {}),
        ("POST", "/v1/agents", []),
        ("POST", "/v1/agents", {"name": "bot"}),
        ("POST", "/v1/agents", {"name": "bot", "adapter": 7}),
    ],
)
def test_a_call_that_is_none_is_refused_in_words(house: Any, method: str, target: str, body: Any) -> None:
    refused = house.refusal(method, target, body)

    assert 2 == refused.exit_code
    assert "wanted" in str(refused)
    assert [] == house.ask("GET", "/v1/agents")["instances"]


def test_bad_arguments_of_good_calls_are_refused_by_name(house: Any) -> None:
    house.register("bot", "import time\ntime.sleep(600)")

    timeout = house.refusal("POST", "/v1/agents/bot/stop", {"timeout_s": "soon"})
    variables = house.refusal("POST", "/v1/agents/bot/start", {"env": {"A": 1}})
    limit = house.refusal("GET", "/v1/agents/bot/exchanges?limit=0")

    assert "timeout_s" in str(timeout) and "env" in str(variables) and "limit" in str(limit)


def test_the_socket_and_everything_in_the_state_directory_is_private(house: Any) -> None:
    house.register("bot", "import time\ntime.sleep(600)")
    house.start("bot")

    modes = {
        path.stat().st_mode & 0o077 for path in [house.root, *house.root.rglob("*")] if not path.is_symlink()
    }

    assert {0} == modes


def test_the_engine_describes_itself(house: Any) -> None:
    facts = house.ask("GET", "/v1/engine")

    assert (1, True, "ok", str(house.root)) == (
        facts["schema_version"],
        facts["running"],
        facts["store"],
        facts["state_dir"],
    )
    assert {"running": 0, "total": 0} == facts["agents"]

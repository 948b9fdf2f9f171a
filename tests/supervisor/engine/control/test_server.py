from typing import Any

import pytest

from kt_client.errors import KtError
from kt_client.link import Link
from kt_ledger.version import VERSION


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


def test_a_socket_that_somebody_removed_is_made_again(house: Any) -> None:
    pid = house.engine_pid()
    house.files.engine_socket.unlink()

    house.wait_for_engine()

    assert pid == house.engine_pid()
    assert 0 == house.files.engine_socket.stat().st_mode & 0o077


def test_every_answer_says_of_which_version_the_engine_is(house: Any) -> None:
    seen: list[str] = []
    link = Link(house.files.engine_socket, seen.append)

    link.ask("GET", "/v1/engine")
    with pytest.raises(KtError):
        link.ask("GET", "/v1/nothing")

    assert [VERSION, VERSION] == seen

"""What of a caller's environment leaves its process."""

import asyncio
from typing import Any

import pytest

from kt_client import variables
from kt_client.asynchronous import AsyncClient
from kt_client.blocking import Client
from kt_client.errors import NotFound
from kt_client.variables import Offer
from kt_client.wire import Request
from kt_manifest.launch import inheritance

HERE = {
    "PATH": "/bin",
    "LC_ALL": "C",
    "XDG_RUNTIME_DIR": "/run",
    "XDG_API_KEY": "canary",
    "KT_RUN": "a-run",
    "OPENAI_API_KEY": "canary",
    "AWS_REGION": "eu",
    "AWS_SECRET_ACCESS_KEY": "canary",
}


@pytest.mark.parametrize(
    "patterns", [None, [], ["*"], ["@default", "AWS_*"], ["PATH", "AWS_SECRET_ACCESS_KEY"], ["K*", "hf_*"]]
)
def test_what_is_chosen_here_is_what_the_engine_would_choose(patterns: list[str] | None) -> None:
    told = {"inherit": inheritance.rule(patterns).to_json(), "secrets": []}

    assert inheritance.inherited(HERE, patterns) == variables.chosen(HERE, told, inherits=True)


def test_secrets_are_chosen_by_their_names_alone() -> None:
    told = {"inherit": inheritance.rule().to_json(), "secrets": ["OPENAI_API_KEY", "GONE"]}

    assert {"OPENAI_API_KEY": "canary"} == variables.chosen(HERE, told, inherits=False)
    assert {"OPENAI_API_KEY", "PATH", "LC_ALL", "XDG_RUNTIME_DIR"} == set(
        variables.chosen(HERE, told, inherits=True)
    )


def test_an_answer_that_says_nothing_has_nothing_sent() -> None:
    assert {} == variables.chosen(HERE, {}, inherits=True)


def test_a_remark_is_made_where_the_variable_is_there() -> None:
    request = Request(method="POST", target="/x")
    offer = Offer(order=request, question=request, variables=HERE)

    assert ["of it"] == offer.remarks({"remarks": {"OPENAI_API_KEY": "of it", "GONE": "of that"}})
    assert {"a": 1, "notices": ["of it", "own"]} == variables.told_of({"a": 1, "notices": ["own"]}, ["of it"])
    assert "canary" not in repr(offer)


@pytest.mark.parametrize("which", ["blocking", "asynchronous"])
def test_an_older_engine_that_cannot_be_asked_gets_what_it_wants(script: Any, kt: Any, which: str) -> None:
    script.is_older = False
    gone = {
        "error": {"code": "no_such_call", "exit_code": 2, "message": "got GET /v1/agents/bot/environment"}
    }
    script.answer_json(404, gone)
    script.answer_json(200, {"state": "running"})

    if which == "blocking":
        answer = Client(kt.state, start_engine=False).start("bot", env=HERE)
    else:
        answer = asyncio.run(_start(kt.state))

    assert {"state": "running"} == answer
    assert b"GET /v1/agents/bot/environment" in script.heads[0]
    assert b"POST /v1/agents/bot/start" in script.heads[1]


async def _start(state: Any) -> Any:
    return await AsyncClient(state, start_engine=False).start("bot", env=HERE)


def test_an_agent_that_is_not_there_is_not_started_with_everything(script: Any, kt: Any) -> None:
    script.is_older = False
    script.answer_json(404, {"error": {"code": "not_found", "exit_code": 3, "message": "no agent named bot"}})

    with pytest.raises(NotFound):
        Client(kt.state, start_engine=False).start("bot", env=HERE)

    assert 1 == len(script.heads)

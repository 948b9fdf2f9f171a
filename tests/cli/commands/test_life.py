"""One agent's life through the command and a real engine, with every refusal on the way."""

import json
import sys
from typing import Any

from tests.house import until

WAITING = "import sys,signal; print('up', flush=True); signal.pause()"


def test_every_refusal_has_its_code_and_a_sentence(shared_kt: Any) -> None:
    kt = shared_kt

    def refused(code: int, words: str, *command: str) -> None:
        done = kt("agent", *command)
        assert (code, "") == (done.code, done.out), (command, done)
        assert words in done.err, (command, done.err)

    assert 0 == kt("agent", "register", "bot", "--kind", "command", "--", sys.executable, "-c", WAITING).code
    refused(2, "bot", "register", "bot", "--kind", "mock")
    refused(3, "nobody", "show", "nobody")
    refused(4, "stop", "stop", "bot")
    refused(5, "budget", "config", "set", "bot", "budget.tokens.per_run", "5")
    refused(2, "no.such.key", "config", "set", "bot", "no.such.key", "5")
    refused(2, "model", "config", "get", "bot", "model")

    kt.client.register("pretend", kind="mock")
    refused(1, "launches nothing", "start", "pretend")
    kt.client.register("ends", kind="command", command=["sh", "-c", "echo last words; exit 3"])
    refused(1, "last words", "start", "ends")
    kt.client.register("lost", kind="command", command=["no-such-program-here"])
    refused(1, "no-such-program-here", "start", "lost")

    assert 0 == kt("agent", "start", "bot").code
    refused(4, "start", "start", "bot")
    refused(4, "force", "remove", "bot")
    assert "running" == kt.client.show("bot")["instance"]["state"]
    stopped = kt("agent", "stop", "bot", "--timeout", "0")
    assert (0, "stopped\n") == (stopped.code, stopped.out)
    assert 0 == kt("agent", "remove", "bot", "--delete").code
    refused(3, "bot", "show", "bot")


def test_an_agent_outlives_the_engine_and_is_found_again(shared_kt: Any) -> None:
    kt = shared_kt
    kt.client.register("bot", kind="command", command=[sys.executable, "-c", WAITING])
    kt.client.start("bot")
    before = kt.client.show("bot")["instance"]

    kt("engine", "stop")
    after = json.loads(kt("agent", "show", "bot", "--json").out)["instance"]

    assert (before["pid"], before["run_id"], "running") == (after["pid"], after["run_id"], after["state"])
    until(lambda: list(kt.client.logs("bot")), "its line is read")
    assert "[agent-out] up" in kt("agent", "logs", "bot").out


def test_calls_of_an_agent_that_made_none_are_said_to_be_none(shared_kt: Any) -> None:
    kt = shared_kt
    kt.client.register("bot", kind="mock")

    assert "No calls of bot were seen.\n" == kt("agent", "calls", "bot").out
    assert {"schema_version": 1, "exchanges": []} == json.loads(kt("agent", "calls", "bot", "--json").out)

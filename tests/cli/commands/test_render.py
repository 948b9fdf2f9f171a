import json
from pathlib import Path
from typing import Any

MANIFEST = """
contract_version = "1.0.0"
[adapter]
kind = "careful"
[lifecycle.start]
exec = "sleep"
args = ["600"]
[capabilities.pause]
linux = "guaranteed"
macos = "guaranteed"
[metering]
source = "self-reported"
[config.model]
file = { path = "own/conf/agent.toml", key = "llm.model" }
[config."acp.command"]
env = "TOOL"
[kt.substitution]
syntax = ["{env:VAR}"]
[kt.isolation]
env = { AGENT_ROOT = "own/data" }
undocumented = ["AGENT_ROOT"]
validated = "1.2.3"
[kt.updates]
env = { NO_UPDATE = "1" }
config = { env = "AGENT_CONTENT", key = "update", value = false }
managed_layer = "an MDM profile can"
verified = "1.2.3"
"""


def test_the_next_start_is_shown_with_its_sources_and_its_secrets_masked(
    shared_kt: Any, tmp_path: Path
) -> None:
    (tmp_path / "adapter.toml").write_text(MANIFEST)
    shared_kt("agent", "register", "bot", "--manifest", str(tmp_path))
    shared_kt("agent", "config", "set", "bot", "model", "m")
    shared_kt("agent", "config", "set", "bot", "acp.command", "secret:MY_TOOL")
    secret = {"MY_TOOL": "sk-canary"}

    shown = shared_kt("agent", "render", "bot", env=secret)
    document = json.loads(shared_kt("agent", "render", "bot", "--json", env=secret).out)
    revealed = shared_kt("agent", "render", "bot", "--reveal", env=secret)
    unresolved = shared_kt("agent", "render", "bot")
    shared_kt("agent", "config", "set", "bot", "agent.AGENT_CONTENT", '{"key": "{env:GONE}"}')
    refused = shared_kt("agent", "render", "bot", env=secret)
    posture = shared_kt("agent", "show", "bot")

    assert (0, "") == (shown.code, shown.err)
    flat = " ".join(shown.out.split())
    for words in (
        "600",
        "TOOL=secret:**** (setting: acp.command)",
        "NO_UPDATE=1 (updates)",
        'AGENT_CONTENT={"update": false} (updates)',
    ):
        assert words in flat
    assert "Folders made in the Agent Home: own/data" in shown.out
    assert 'model = "m"' in shown.out
    assert "canary" not in shown.out + json.dumps(document)
    assert document["starts"]
    assert "run id-of-the-next-run" in document["launch"]["files"][0]["content"]
    assert "sk-canary" in revealed.out
    assert 1 == unresolved.code
    assert "Program: " in unresolved.out and "secret:****" in unresolved.out, "what can be said is said"
    assert "secret:MY_TOOL" in unresolved.err
    assert 1 == refused.code
    assert "agent.AGENT_CONTENT names GONE, which is not set" in refused.err
    assert '"update": false' in refused.out
    for words in (
        "AGENT_ROOT = own/data",
        "last tried on 1.2.3",
        "an MDM profile can",
        "Undocumented levers",
    ):
        assert words in posture.out
    assert (3, "") == (shared_kt("agent", "render", "ghost").code, shared_kt("agent", "render", "ghost").out)


def test_of_a_running_agent_it_is_said_in_what_the_next_start_differs(shared_kt: Any) -> None:
    shared_kt("agent", "register", "bot", "--kind", "command", "--", "sleep", "600")
    shared_kt("agent", "start", "bot")

    same = shared_kt("agent", "render", "bot")
    shared_kt("agent", "config", "set", "bot", "agent.LEVEL", "2")
    other = shared_kt("agent", "render", "bot", env={"LANG": "xx"})

    assert (0, "It runs now, and the next start would run the same.") == (
        same.code,
        same.out.splitlines()[-1],
    )
    differs = " ".join(other.out.split()).rpartition("It runs now; ")[2]
    assert "the next start differs in: " in differs
    assert "variable LEVEL (new)" in differs
    assert "variable LANG" in differs

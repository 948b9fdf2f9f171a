import json
from typing import Any


def test_memory_is_attached_shown_and_detached_by_the_command(shared_kt: Any) -> None:
    kt = shared_kt
    kt.client.register("bot", kind="command", command=["sleep", "600"])

    attached = kt("agent", "memory", "attach", "bot", "--kind", "filesystem")
    shown = kt("agent", "memory", "show", "bot")
    facts = json.loads(kt("agent", "memory", "show", "bot", "--json").out)
    conflict = kt("agent", "memory", "attach", "bot", "--kind", "native")
    detached = json.loads(kt("agent", "memory", "detach", "bot", "--json").out)
    nothing = kt("agent", "memory", "show", "bot")

    assert 0 == attached.code
    assert attached.out.splitlines()[-1] == facts["dir"]
    assert "kt keeps this folder" in attached.out
    assert "managed_dir_byte_durable" in shown.out
    assert "mapped nowhere" in shown.out
    assert (4, "") == (conflict.code, conflict.out)
    assert {"schema_version": 1, "instance": "bot"} == detached
    assert "no memory attached" in nothing.out
    assert 2 == kt("agent", "memory", "attach", "bot", "--kind", "vector").code
    assert 3 == kt("agent", "memory", "show", "ghost").code

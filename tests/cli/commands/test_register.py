import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_a_shipped_adapter_is_registered_by_its_kind(shared_kt: Any) -> None:
    by_kind = shared_kt("agent", "register", "one", "--adapter", "self-reporting", "--json")
    by_path = shared_kt(
        "agent", "register", "two", "--manifest", str(ROOT / "adapters" / "self-reporting"), "--json"
    )

    assert (0, 0) == (by_kind.code, by_path.code)
    one, two = json.loads(shared_kt("agent", "list", "--json").out)["instances"]
    assert ("self-reporting", "self-reporting") == (one["kind"], two["kind"])
    assert ("self-reported", "self-reported") == (one["metering_source"], two["metering_source"])


def test_what_a_shipped_adapter_needs_next_is_told_with_the_agents_name(shared_kt: Any) -> None:
    done = shared_kt("agent", "register", "coder", "--adapter", "codex")

    assert 0 == done.code
    for words in (
        "agent.PROMPT",
        "restart.policy never",
        "metering.upstream_base_url https://api.openai.com/v1",
    ):
        assert f"kt agent config set coder {words}" in done.err
    assert "Next: kt agent start coder" in done.err and " NAME" not in done.err


def test_a_start_of_a_template_says_that_it_is_one(shared_kt: Any) -> None:
    shared_kt("agent", "register", "blank", "--adapter", "self-reporting")

    done = shared_kt("agent", "start", "blank")

    assert 1 == done.code
    assert (
        "no my-agent on PATH" in done.err
        and "the adapter self-reporting that comes with kt is a template" in done.err
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "neither of --kind, --manifest, --adapter"),
        (("--kind", "mock", "--adapter", "self-reporting"), "--kind and --adapter"),
        (("--manifest", ".", "--adapter", "self-reporting"), "--manifest and --adapter"),
        (("--adapter", "self-reportin"), "did you mean self-reporting?"),
        (("--adapter", "command"), "unknown adapter"),
        (("--kind", "self-reporting"), "unknown kind"),
        (("--adapter", "self-reporting", "--observe"), "go with --kind command only"),
        (("--adapter", "self-reporting", "--", "prog"), "go with --kind command only"),
        (("--kind", "mock", "--interactive"), "go with --kind command only"),
    ],
)
def test_anything_else_is_wrong_use_and_leaves_nothing(kt: Any, words: tuple[str, ...], says: str) -> None:
    done = kt("agent", "register", "x", *words)

    assert (2, "") == (done.code, done.out)
    assert says in done.err
    assert not kt.state.exists()

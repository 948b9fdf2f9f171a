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

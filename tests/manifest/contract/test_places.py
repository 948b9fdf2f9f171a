import time

from kt_manifest.contract.places import Clash, Owner, Places
from kt_manifest.contract.snapshot import EnvTarget, FileTarget, FlagTarget, Rule, Shape

ONE, TWO = Owner("[a]", "a"), Owner("[b]", "b")


def _second(one: Rule, two: Rule) -> Clash | None:
    places = Places()
    assert places.take(ONE, one) is None
    return places.take(TWO, two)


def _rule(path: str, key: str, **shape: object) -> Rule:
    return Rule("k", FileTarget(path, key), Shape(**shape))  # type: ignore[arg-type]


def test_apart_is_no_clash() -> None:
    assert _second(_rule("f", "a.b"), _rule("f", "a.c")) is None
    assert _second(_rule("d/f", "a"), _rule("d/g", "a")) is None
    assert _second(_rule("f", "a.b", format="env"), _rule("f", "a", format="env")) is None
    assert _second(Rule("k", EnvTarget("A")), Rule("k", EnvTarget("B"))) is None
    assert (
        _second(Rule("k", FlagTarget("-a")), Rule("k", FlagTarget("-a"))) is None
    )  # the contract's own to judge


def test_whoever_came_first_is_named() -> None:
    for one, two, fault in (
        (Rule("k", EnvTarget("A")), Rule("k", EnvTarget("A")), "the same variable as"),
        (_rule("d", "a"), _rule("d/f", "a"), "a file where a folder is needed for"),
        (_rule("d/f", "a"), _rule("d", "a"), "a file where a folder is needed for"),
        (
            _rule("f", "a"),
            _rule("f", "b", merge=True),
            'format = "toml", merge = true beside format = "toml", merge = false, for the same file as',
        ),
        (_rule("f", "a"), _rule("f", "a"), "a native key at or under one of"),
        (_rule("f", "a"), _rule("f", "a.b"), "a native key at or under one of"),
        (_rule("f", "a.b"), _rule("f", "a"), "a native key at or under one of"),
        (
            _rule("f", "", format="text", template="x"),
            _rule("f", "", format="text", template="y"),
            "the same file, which is one text, as",
        ),
        (_rule("f", "", template="[a]\nb = 1\n"), _rule("f", "a.b.c"), "a native key at or under one of"),
    ):
        clash = _second(one, two)
        assert clash is not None
        assert (fault, ONE) == (clash.fault, clash.owner)


def test_many_deep_keys_are_judged_in_time() -> None:
    places, deep = Places(), ".".join(["a"] * 900)
    started_s = time.process_time()

    for number in range(300):
        assert places.take(Owner(str(number), "k"), _rule("f", f"{deep}.{number}")) is None

    assert time.process_time() - started_s < 10

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kt_manifest.contract import kinds
from kt_manifest.contract.snapshot import EnvTarget, FileTarget, FlagTarget, Rule, Shape, Target
from kt_manifest.launch import masking, render
from kt_manifest.launch.render import Launch, RunFacts

LEFT, RIGHT = "Canary", "Yranac"
ODD = "".join(chr(number) for number in range(1, sys.maxunicode + 1) if not 0xD800 <= number < 0xE000)
BEYOND_ASCII = "é\u2028\u2029\x7f\x85\u00ad\ufeff\ufffe\uffff\U0001f600\U000e0001"
TEMPLATES = {
    "json": '{"a": "${agent.A}"}',
    "toml": 'a = "${agent.A}"',
    "yaml": 'a: "${agent.A}"',
    "text": "a ${agent.A}",
}


def launched(
    secret: str, rules: list[tuple[Target, Shape]], types: dict[str, str]
) -> tuple[Launch, Launch | None]:
    adapter = replace(
        kinds.command(["true"], interactive=False, observe=False),
        mapping=tuple(Rule("agent.A", target, shape) for target, shape in rules),
        types=types,
    )
    facts = RunFacts(
        home=Path("/home"),
        base_environment={"PATH": "/bin"},
        secret_keys=frozenset({"agent.A"}),
        written={"agent.A": "before ${secret:S}"},
        secrets={"S": secret},
    )
    values = {"agent.A": f"before {secret}"}
    plain = render.preview(adapter, values, facts)
    return plain, masking.launch(plain, adapter, values, facts, plain.secret_texts)


def told(launch: Launch) -> str:
    return repr(
        [
            launch.argv,
            launch.env,
            [file.content for file in launch.files],
            [file.edits for file in launch.merges],
        ]
    )


def every_form(merge: bool) -> list[tuple[Target, Shape]]:
    rules: list[tuple[Target, Shape]] = [(FlagTarget("--a"), Shape()), (EnvTarget("B"), Shape())]
    for format_ in ("toml", "json", "yaml", "env"):
        rules.append((FileTarget(f"a.{format_}", "k"), Shape(format=format_, merge=merge)))
    return rules


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("char", [*BEYOND_ASCII, "\t", '"', "'", "\\", "$", "#", " ", "`"])
def test_no_format_shows_a_secret_however_it_spells_it(char: str, merge: bool) -> None:
    plain, shown = launched(f"{LEFT}{char}é\u2028{RIGHT}", every_form(merge), {})

    assert shown is not None
    assert LEFT in told(plain) and RIGHT in told(plain)
    assert LEFT not in told(shown) and RIGHT not in told(shown)
    assert "before secret:****" in told(shown)
    assert [file.path for file in plain.files] == [file.path for file in shown.files]
    assert plain.env.keys() == shown.env.keys()


@pytest.mark.parametrize(
    "format_", ["json", "yaml", *(pytest.param(name, marks=pytest.mark.long) for name in ("toml", "env"))]
)
def test_no_character_of_unicode_lets_a_secret_through(format_: str) -> None:
    """One secret of every thousand characters: whatever a format escapes, the ends of it are nowhere."""
    rules: list[tuple[Target, Shape]] = [(FileTarget("a", "k"), Shape(format=format_))]
    for start in range(0, len(ODD), 50_000):
        _, shown = launched(f"{LEFT}{ODD[start : start + 50_000]}{RIGHT}", rules, {})

        assert shown is not None
        assert LEFT not in told(shown) and RIGHT not in told(shown)


@pytest.mark.parametrize("format_", TEMPLATES)
def test_a_template_is_filled_with_masked_values(format_: str) -> None:
    shape = Shape(format=format_, template=TEMPLATES[format_])
    rules: list[tuple[Target, Shape]] = [(FileTarget("a", ""), shape), (EnvTarget("B"), shape)]

    _, shown = launched(f"{LEFT}é\u2028{RIGHT}", rules, {})

    assert shown is not None
    assert LEFT not in told(shown) and RIGHT not in told(shown)


def test_a_masked_value_that_fits_its_type_no_longer_gives_nothing() -> None:
    adapter = replace(
        kinds.command(["true"], interactive=False, observe=False),
        mapping=(Rule("agent.A", FileTarget("a.json", "k"), Shape(format="json")),),
        types={"agent.A": "integer"},
    )
    facts = RunFacts(home=Path("/home"), base_environment={}, secret_keys=frozenset({"agent.A"}))

    plain = render.preview(adapter, {"agent.A": "12345"}, facts)
    assert plain.files and masking.launch(plain, adapter, {"agent.A": "12345"}, facts, ["12345"]) is None

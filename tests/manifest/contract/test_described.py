from pathlib import Path

import pytest

from kt_manifest.contract import described, manifest
from kt_manifest.contract.snapshot import EnvTarget, FileTarget, FlagTarget, Rule, Shape

GOOD = Path(__file__).resolve().parents[2] / "manifests" / "good"
SHIPPED = Path(__file__).resolve().parents[3] / "adapters"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Rule("model", EnvTarget("MODEL")), "variable MODEL"),
        (Rule("model", FlagTarget("--model")), "flag --model"),
        (Rule("model", FileTarget("a.toml", "x.y")), "key x.y in file a.toml"),
        (
            Rule("model", FileTarget("a.txt", ""), Shape(format="text", template="m=${model}")),
            'the whole of file a.txt, in text, from template "m=${model}"',
        ),
        (
            Rule("acp.args", FileTarget("a.json", "x"), Shape(format="json", merge=True)),
            "key x in file a.json, as array, in json, merged into what is there",
        ),
    ],
)
def test_a_rule_says_where_and_in_which_form(rule: Rule, text: str) -> None:
    assert text == described.rule(rule, {"acp.args": "array"})


@pytest.mark.parametrize("folder", sorted(SHIPPED.glob("*/adapter.toml")), ids=lambda path: path.parent.name)
def test_no_fact_of_a_shipped_adapter_is_left_out_or_half_a_sentence(folder: Path) -> None:
    adapter = manifest.load(folder)

    told = list(described.lines(adapter))
    text = "\n".join(f"{title} {words}" for title, words in told)

    assert all(
        words.strip() and words == words.strip() for title, words in told if not title.startswith("  ")
    )
    posture = adapter.posture
    facts = [
        *(rule.key for rule in adapter.mapping),
        *adapter.defaults,
        *posture.substitution,
        *(posture.isolation.env if posture.isolation else ()),
        *(posture.updates.env if posture.updates else ()),
        *(posture.updates.args if posture.updates else ()),
        *((posture.version.pattern, *posture.version.command) if posture.version else ()),
        *adapter.trial.args,
        *adapter.trial.settings,
    ]
    assert [] == [fact for fact in facts if fact not in text]


def test_everything_of_kt_is_told() -> None:
    adapter = manifest.load(GOOD / "kt_everything.toml")

    titles = {title for title, _ in described.lines(adapter)}

    assert {"Isolation", "Updates", "Version", "Substitution"} <= titles

from pathlib import Path

from kt_manifest.launch import run_facts
from kt_manifest.launch.run_facts import RunFacts


def test_only_what_is_there_is_delivered_and_only_under_the_engines_keys() -> None:
    whole = RunFacts(
        home=Path("/h"),
        base_environment={},
        metering_base_url="u",
        metering_origin="o",
        placeholder_key="p",
        memory_dir=Path("/m"),
    )

    assert run_facts.ENGINE_KEYS == set(whole.delivered())
    assert "/m" == whole.delivered()["memory.dir"]
    assert {} == RunFacts(home=Path("/h"), base_environment={}).delivered()


def test_no_key_and_no_variable_shows_in_a_repr() -> None:
    facts = RunFacts(home=Path("/h"), base_environment={"A": "canary-1"}, placeholder_key="canary-2")

    assert "canary" not in repr(facts)

from pathlib import Path

from kt_manifest.launch.run_facts import CARRY_A_TOKEN, ENGINE_KEYS, RunFacts


def test_only_what_there_is_is_delivered_and_all_of_it_is_the_engines() -> None:
    bare = RunFacts(home=Path("/h"), base_environment={})
    full = RunFacts(
        home=Path("/h"),
        base_environment={"K": "sk-canary"},
        metering_base_url="u",
        metering_origin="o",
        placeholder_key="sk-canary",
        memory_dir=Path("/m"),
    )

    assert {} == bare.delivered()
    assert {
        "metering.base_url": "u",
        "metering.origin": "o",
        "metering.upstream_api_key": "sk-canary",
        "memory.dir": "/m",
    } == full.delivered()
    assert ENGINE_KEYS == set(full.delivered()) and CARRY_A_TOKEN < ENGINE_KEYS
    assert "canary" not in repr(full)

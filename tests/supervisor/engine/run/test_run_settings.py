import json
import stat

import pytest

from kt_ledger.layout import StateLayout
from kt_manifest.configuration.layers import Entry
from kt_supervisor.engine.run import run_settings

ENTRIES = (
    Entry("model", "a", "instance", False),
    Entry("acp.args", ["-a", "b"], "fleet", False),
    Entry("agent.X", "1", "invocation-override", True),
    Entry("metering.upstream_api_key", "sk-clear", "instance", False),
    Entry("agent.OPENAI_API_KEY", "sk-own", "instance", True),
    Entry("agent.ANTHROPIC_API_KEY", "secret:MINE", "instance", True),
)


@pytest.fixture
def files(tmp_path_factory: pytest.TempPathFactory) -> StateLayout:
    return StateLayout(tmp_path_factory.mktemp("state"))


def test_what_a_start_used_is_kept_for_the_next_without_a_caller(files: StateLayout) -> None:
    run_settings.store(files, "i", "r", ENTRIES)

    started = run_settings.load(files, "i")

    assert started is not None
    assert ("r", {"agent.X": "1"}) == (started.run_id, started.overrides)
    assert started.has("model", "a")
    assert started.has("acp.args", ["-a", "b"])
    assert started.has("unheard", None)
    assert not started.has("model", None)
    assert not started.has("model", "b")


def test_a_key_is_kept_as_a_digest_that_tells_whether_it_changed(files: StateLayout) -> None:
    run_settings.store(files, "i", "r", ENTRIES)

    text = files.started("i").read_text()
    started = run_settings.load(files, "i")

    assert started is not None
    assert "sk-clear" not in text
    assert "sk-own" not in text
    assert started.has("metering.upstream_api_key", "sk-clear")
    assert not started.has("metering.upstream_api_key", "sk-other")
    assert not started.has("metering.upstream_api_key", None)
    assert started.has("agent.ANTHROPIC_API_KEY", "secret:MINE")


def test_only_the_operator_reads_it(files: StateLayout) -> None:
    run_settings.store(files, "i", "r", ENTRIES)

    path = files.started("i")

    assert (0o600, 0o700) == (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"schema_version": 2}',
        '{"schema_version": 1, "run_id": "r"}',
        json.dumps({"schema_version": 1, "run_id": "r", "overrides": {"a": 1}, "values": {}, "digests": {}}),
        json.dumps(
            {"schema_version": 1, "run_id": "r", "overrides": {}, "values": {"a": [1]}, "digests": {}}
        ),
    ],
)
def test_a_damaged_file_is_as_none(files: StateLayout, text: str) -> None:
    files.started("i").parent.mkdir()
    files.started("i").write_text(text)

    assert run_settings.load(files, "i") is None


def test_it_goes_with_the_instance(files: StateLayout) -> None:
    run_settings.store(files, "i", "r", ENTRIES)

    run_settings.forget(files, "i")
    run_settings.forget(files, "i")

    assert run_settings.load(files, "i") is None

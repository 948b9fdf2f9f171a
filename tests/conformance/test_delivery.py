"""Values in forms of their own are found where they arrive: templates, JSON and env files."""

from pathlib import Path

from tests.conformance.conftest import Declared, fake

from kt_conformance import kit, report
from kt_conformance.rig import Rig

FORMS = """
[kt.config."metering.base_url"]
env = "CONTENT"
template = '{"model": "kt/${model}", "url": "${metering.base_url}", "key": "${metering.upstream_api_key}"}'

[kt.config.model]
file = { path = "etc/agent.json", key = "llm.model" }
format = "json"

[kt.config."memory.dir"]
file = { path = "etc/agent.env", key = "MEMORY" }
format = "env"
"""


def test_forms_of_their_own_are_looked_into(rig: Rig, tmp_path: Path) -> None:
    declared = Declared(fake(), source="engine-observed", more=FORMS).subject(tmp_path)

    for section in ("config_mapping", "memory", "restart"):
        result = kit.one(declared, rig, section)

        assert report.PASS == result.status, result


def test_a_variable_lost_below_a_template_is_seen(rig: Rig, tmp_path: Path) -> None:
    argv = ("sh", "-c", 'unset CONTENT; exec "$@"', "wrapper", *fake())
    declared = Declared(argv, source="engine-observed", more=FORMS).subject(tmp_path)

    result = kit.one(declared, rig, "config_mapping")

    assert report.FAIL == result.status
    assert "got nothing in variable CONTENT" in (result.reason or "")

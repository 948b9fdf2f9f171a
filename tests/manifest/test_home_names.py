import ast
from pathlib import Path

import pytest

from kt_manifest import home_names
from kt_manifest.contract import judgement

ROOMS = Path(__file__).resolve().parents[2]
TABLES = {"manifest/kt_manifest/home_names.py", "ledger/kt_ledger/layout.py"}
"""Where one of the names is written out: the table, and what speaks of the fleet's own config.toml."""


def sections(table: dict[str, object]) -> list[tuple[str, str]]:
    return [
        (fault.section, str(fault.got)) for fault in judgement.faults({"kt": table}) if "own" in fault.got
    ]


@pytest.mark.parametrize("name", home_names.TABLE)
@pytest.mark.parametrize("below", ["", "/below"])
def test_nothing_an_adapter_declares_may_be_at_or_below_a_name_of_ours(name: str, below: str) -> None:
    path = f"{name}{below}"
    own = f"kt's own {home_names.kind_of(name)} in the Agent Home"
    kt = {
        "isolation": {"env": {"A_HOME": path}},
        "updates": {"config": {"file": path, "key": "a", "value": False}},
        "config": {"agent.A": {"file": {"path": path, "key": "a"}, "merge": True, "format": "toml"}},
    }
    document = {"config": {"model": {"file": {"path": path, "key": "a"}}}, "kt": kt}

    found = {fault.section for fault in judgement.faults(document) if own in fault.got}

    assert {"[config.model]", "[kt.isolation]", "[kt.updates]", "[kt.config.agent.A]"} <= {
        name.replace('"', "") for name in found
    }


@pytest.mark.parametrize("path", ["sub/memory", "memories", "sub/config.toml", "config.toml.d/a"])
def test_a_name_of_ours_elsewhere_is_anybodys(path: str) -> None:
    assert home_names.ours_among(tuple(path.split("/"))) is None


def test_the_names_are_written_out_in_the_table_alone() -> None:
    found = set()

    for room in ("manifest", "supervisor", "client", "cli", "ledger"):
        for path in ROOMS.glob(f"{room}/kt_{room}/**/*.py"):
            literals = {
                n.value for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Constant)
            }
            if literals & (home_names.TABLE.keys() - {home_names.MEMORY}):
                found.add(path.relative_to(ROOMS).as_posix())

    assert TABLES == found

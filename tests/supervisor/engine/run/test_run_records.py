import json
from pathlib import Path

import pytest

from kt_ledger.layout import StateLayout
from kt_supervisor.engine.run import run_records


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"null", b"\xff", b"7"])
def test_what_is_no_object_is_no_record(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(data)

    assert run_records.read_json(path) is None
    assert run_records.read_json(tmp_path / "missing.json") is None
    assert run_records.read_json(tmp_path) is None


def test_an_owner_is_read_without_the_ledger(tmp_path: Path) -> None:
    run = StateLayout(tmp_path).run("r1")
    run.root.mkdir(parents=True)
    whose = {"instance_id": "i", "name": "bot", "number": 3}
    run_records.owner_file(run).write_text(json.dumps(whose))

    assert whose == run_records.owner(run)
    assert run_records.owner(StateLayout(tmp_path).run("r2")) is None

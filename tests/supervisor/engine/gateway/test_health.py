import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kt_ledger import process_identity
from kt_ledger.layout import GatewayLayout
from kt_supervisor.engine.gateway import health
from kt_supervisor.engine.gateway.health import PATIENCE, Health
from kt_supervisor.keeper import proctree


@pytest.fixture
def hung(tmp_path: Path) -> Any:
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def record(files: GatewayLayout, process: Any, **other: Any) -> None:
    facts = {
        "pid": process.pid,
        "start_ticks": proctree.start_ticks(process.pid),
        "boot_id": process_identity.boot_id(),
    }
    files.record.write_text(json.dumps(facts | other))


def test_the_process_of_the_record_is_ended(tmp_path: Path, hung: Any) -> None:
    files = GatewayLayout(tmp_path)
    record(files, hung)

    assert health.end_hung(files)
    assert -9 == hung.wait(10)


@pytest.mark.parametrize("other", [{"start_ticks": 1}, {"boot_id": "another"}, {"pid": None}])
def test_a_process_that_the_record_does_not_prove_is_left_alone(
    tmp_path: Path, hung: Any, other: dict[str, Any]
) -> None:
    files = GatewayLayout(tmp_path)
    record(files, hung, **other)

    assert not health.end_hung(files)
    assert hung.poll() is None


def test_it_is_ended_after_so_many_silences_in_a_row_and_not_before(tmp_path: Path, hung: Any) -> None:
    files = GatewayLayout(tmp_path)
    record(files, hung)
    looking = Health(files)

    async def silences(count: int) -> list[bool]:
        return [await looking.silent() for _ in range(count)]

    first = asyncio.run(silences(PATIENCE - 1))
    looking.answered()
    second = asyncio.run(silences(PATIENCE))

    assert [False] * (PATIENCE - 1) == first
    assert [*first, True] == second

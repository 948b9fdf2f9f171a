import os
from pathlib import Path
from typing import Any

from kt_ledger.clock import SystemClock
from kt_ledger.layout import StateLayout
from kt_supervisor.doctor import examination, finding
from kt_supervisor.doctor.finding import Level


def snapshot(root: Path) -> list[tuple[str, int, int]]:
    facts = [(str(path), path.lstat().st_mtime_ns, path.lstat().st_ino) for path in sorted(root.rglob("*"))]
    return [*facts, (str(root), root.stat().st_mtime_ns, 0)]


def test_it_looks_without_an_engine_and_changes_nothing(tmp_path: Path) -> None:
    files = StateLayout(tmp_path / "state")
    files.runs.mkdir(parents=True)
    before = snapshot(tmp_path)

    found = examination.examine(files, clock=SystemClock(), user="nobody")

    assert before == snapshot(tmp_path)
    checks = [one.check for one in found]
    assert len(checks) == len(set(checks))
    assert {"disk", "filesystem", "sqlite", "cgroups", "clock", "keepers", "ports", "descriptors"} <= set(
        checks
    )


def test_a_place_that_is_not_there_stays_so(tmp_path: Path) -> None:
    examination.examine(StateLayout(tmp_path / "none"), clock=SystemClock(), user="nobody")

    assert not (tmp_path / "none").exists()


def test_the_engine_finds_a_keeper_that_it_does_not_know_and_an_open_file(own_house: Any) -> None:
    house = own_house
    house.register("bot", "import time\ntime.sleep(600)")
    started = house.start("bot")
    healthy = house.ask("GET", "/v1/doctor")
    stray = house.files.run("stray")
    stray.root.mkdir(mode=0o700)
    os.link(house.files.run(started["run_id"]).record, stray.record)
    house.files.secrets.touch()
    house.files.secrets.chmod(0o644)

    found = {one["check"]: one for one in house.ask("GET", "/v1/doctor")["findings"]}

    assert (True, "ok") == (healthy["engine"], levels(healthy)["keepers"])
    assert "bad" not in levels(healthy).values()
    assert ["bad"] * 3 == [found[check]["level"] for check in ("keepers", "secrets", "permissions")]
    assert "run stray" in found["keepers"]["found"]


def levels(document: Any) -> dict[str, str]:
    return {one["check"]: one["level"] for one in document["findings"]}


def test_the_worst_finding_is_the_documents() -> None:
    fine, less, ill = finding.ok("a", "x"), finding.warn("b", "x", "y"), finding.bad("c", "x", "y")

    worst = [
        finding.document(some, engine=False)["worst"] for some in ([fine], [fine, less], [ill, less], [])
    ]

    assert [Level.OK, Level.WARN, Level.BAD, Level.OK] == worst

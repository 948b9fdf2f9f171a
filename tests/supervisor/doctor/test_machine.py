from pathlib import Path

import pytest

from kt_supervisor.doctor import machine
from kt_supervisor.doctor.finding import Level

NOW_NS = 1_800_000_000 * 10**9


@pytest.mark.parametrize(
    ("version", "told"),
    [((3, 6, 23), False), ((3, 7, 0), True), ((3, 40, 1), True), ((3, 51, 2), True), ((3, 51, 3), False)],
)
def test_an_sqlite_with_the_wal_bug_is_told_and_why_it_does_not_matter(
    version: tuple[int, ...], told: bool
) -> None:
    finding = machine.judge_sqlite(version)

    assert Level.OK is finding.level
    assert told is ("the ledger has one" in finding.found)


def hierarchy(root: Path, controllers: str) -> Path:
    folder = root / "user" / "kt"
    folder.mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpu memory pids io")
    (folder / "cgroup.controllers").write_text(controllers)
    for name in ("cgroup.procs", "cgroup.subtree_control"):
        (folder / name).touch()
    return folder


@pytest.mark.parametrize(
    ("controllers", "own", "level", "words"),
    [
        ("cpu io memory pids", "0::/user/kt\n", Level.OK, "delegated with cpu, memory, pids"),
        ("memory pids", "0::/user/kt\n", Level.WARN, "without cpu"),
        ("cpu memory pids", "0::/user/other\n", Level.WARN, "not delegated"),
        ("cpu memory pids", "4:memory:/x\n", Level.WARN, "no version 2"),
    ],
)
def test_a_control_group_is_ours_where_we_may_make_others_below(
    tmp_path: Path, controllers: str, own: str, level: Level, words: str
) -> None:
    hierarchy(tmp_path, controllers)
    (tmp_path / "own").write_text(own)

    finding = machine.cgroups(own=tmp_path / "own", root=tmp_path)

    assert level is finding.level
    assert words in finding.found


@pytest.mark.parametrize(
    ("facts", "level", "words"),
    [
        ({}, Level.OK, "plausible"),
        ({"wall_ns": 10**9}, Level.BAD, "since 1970"),
        ({"newest_ns": NOW_NS + 3600 * 10**9}, Level.WARN, "3600 s in the future"),
        ({"newest_ns": NOW_NS + 10**9}, Level.OK, ""),
        ({"jumped_ns": -90 * 10**9}, Level.WARN, "-90.0 s"),
        ({"jumped_ns": 10**6}, Level.OK, ""),
    ],
)
def test_a_clock_that_moved_is_told(facts: dict[str, int], level: Level, words: str) -> None:
    finding = machine.clock(**({"wall_ns": NOW_NS} | facts))

    assert level is finding.level
    assert words in finding.found


def test_a_suspended_machine_has_not_moved_its_clock() -> None:
    assert 0 == machine.moved((NOW_NS, 100), (NOW_NS + 10**12, 100 + 10**12))
    assert 5 == machine.moved((NOW_NS, 100), (NOW_NS + 15, 110))
    assert machine.moved((NOW_NS, None), (NOW_NS, 1)) is None
    assert (machine.uptime_ns() or 0) > 0
    assert machine.uptime_ns(source=Path("/nowhere")) is None


@pytest.mark.parametrize(("soft", "level"), [(256, Level.WARN), (1024, Level.OK), (-1, Level.OK)])
def test_few_descriptors_are_told(soft: int, level: Level) -> None:
    assert level is machine.judge_descriptors(soft, 4096).level


def test_services_that_end_at_a_log_out_are_told(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "stays").touch()

    def level(user: str, booted: Path) -> Level:
        return machine.linger(user, booted=booted, kept=tmp_path / "kept").level

    assert Level.WARN is level("leaves", tmp_path)
    assert Level.OK is level("stays", tmp_path)
    assert Level.OK is level("root", tmp_path)
    assert Level.OK is level("leaves", tmp_path / "none")

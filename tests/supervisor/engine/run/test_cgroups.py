import os
import subprocess
import sys
from pathlib import Path

import pytest

from kt_supervisor.engine.run import cgroups
from kt_supervisor.engine.run.cgroups import Level

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
HYBRID = (
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
)


def _level(
    path: str, *, writable: bool = True, populated: bool = False, root: bool = False, marked: bool = False
) -> Level:
    return Level(path=path, writable=writable, populated=populated, is_root=root, marked=marked)


@pytest.mark.parametrize(
    ("self_cgroup", "mountinfo", "folder"),
    [
        ("0::/user.slice/x.service\n", V2, "/sys/fs/cgroup/user.slice/x.service"),
        ("0::/\n", V2, "/sys/fs/cgroup"),
        ("4:memory:/a\n0::/\n", HYBRID, "/sys/fs/cgroup/unified"),
        ("4:memory:/a\n0::/b\n", HYBRID, "/sys/fs/cgroup/unified/b"),
        ("4:memory:/a\n", HYBRID, None),
        ("0::/x\n", HYBRID.splitlines()[0], None),
        ("0::/../other\n", V2, None),
        ("0::/docker/c1/x\n", V2.replace("0:26 / ", "0:26 /docker/c1 "), "/sys/fs/cgroup/x"),
        ("0::/docker/c1\n", V2.replace("0:26 / ", "0:26 /docker/c1 "), "/sys/fs/cgroup"),
        ("0::/docker/c10\n", V2.replace("0:26 / ", "0:26 /docker/c1 "), None),
        ("0::/x\n", V2.replace("/sys/fs/cgroup ", "/a\\040b "), "/a b/x"),
        ("", "", None),
        ("0::/x", "nonsense\n - \n", None),
    ],
)
def test_our_own_folder_is_found_in_the_v2_hierarchy(
    self_cgroup: str, mountinfo: str, folder: str | None
) -> None:
    assert folder == cgroups.own_folder(self_cgroup, mountinfo)


def test_a_delegated_unit_whose_engine_sits_in_a_subgroup_is_divided() -> None:
    levels = [
        _level("/u/kt.service/engine", populated=True),
        _level("/u/kt.service", marked=True),
        _level("/u"),
    ]

    assert "/u/kt.service" == cgroups.find(levels, systemd=True).path


def test_an_engine_in_the_unit_itself_makes_do_with_it() -> None:
    levels = [_level("/u/kt.service", populated=True, marked=True), _level("/u")]

    assert "/u/kt.service" == cgroups.find(levels, systemd=True).path


def test_what_systemd_did_not_delegate_is_left_alone_even_where_it_can_be_written() -> None:
    levels = [_level("/user.slice/session-1.scope", populated=True), _level("/", root=True)]

    found = cgroups.find(levels, systemd=True)

    assert found.path is None
    assert "Delegate=yes" in found.why


def test_nothing_above_the_delegated_unit_is_touched() -> None:
    levels = [
        _level("/a/unit", populated=True, marked=True),
        _level("/a", populated=False),
        _level("/", root=True),
    ]

    assert "/a/unit" == cgroups.find(levels, systemd=True).path


def test_without_systemd_whatever_can_be_written_is_ours_and_an_empty_folder_is_better() -> None:
    levels = [_level("/a/b", populated=True), _level("/a"), _level("/", writable=False, root=True)]

    assert "/a" == cgroups.find(levels, systemd=False).path


def test_the_root_may_hold_processes_of_its_own() -> None:
    assert "/" == cgroups.find([_level("/", populated=True, root=True)], systemd=False).path


def test_a_folder_that_cannot_be_written_is_told() -> None:
    found = cgroups.find([_level("/x", writable=False), _level("/", root=True)], systemd=False)

    assert (None, "/x cannot be written by this user") == (found.path, found.why)


def test_the_reader_sees_folders_up_to_the_end_of_the_mount(tmp_path: Path) -> None:
    own = tmp_path / "mount" / "unit" / "engine"
    for folder in (own, own.parent, own.parent.parent):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (
            ("cgroup.procs", ""),
            ("cgroup.subtree_control", ""),
        ):
            (folder / name).write_text(text)
    (own / "cgroup.procs").write_text("17\n")
    (own / "cgroup.type").write_text("domain\n")

    levels = cgroups.look(str(own))

    assert [str(own), str(own.parent), str(own.parent.parent)] == [level.path for level in levels]
    assert [True, False, False] == [level.populated for level in levels]
    assert [False, True, True] == [level.is_root for level in levels]


def test_on_this_machine_the_answer_is_a_folder_that_takes_a_child_or_a_reason() -> None:
    found = cgroups.parent_for_agents()

    if found.path is None:
        assert found.why
    else:
        child = Path(found.path) / "kt-test-of-cgroups"
        child.mkdir()
        child.rmdir()


def test_an_engine_in_a_group_of_its_own_finds_the_empty_one_above_it() -> None:
    place = cgroups.own_folder(
        Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text()
    )
    if place is None or Path("/run/systemd/system").is_dir() or not os.access(place, os.W_OK):
        pytest.skip("no cgroup v2 here that is ours to divide")
    unit = Path(place) / f"kt-test-{os.getpid()}"
    inner = unit / "engine"
    inner.mkdir(parents=True)
    code = (
        "import os, sys; from kt_supervisor.engine.run import cgroups; "
        "open(sys.argv[1] + '/cgroup.procs', 'w').write(str(os.getpid())); "
        "print(cgroups.parent_for_agents().path)"
    )

    try:
        told = subprocess.run(
            [sys.executable, "-c", code, str(inner)], capture_output=True, text=True, check=True
        )
    finally:
        inner.rmdir()
        unit.rmdir()

    assert str(unit) == told.stdout.strip()

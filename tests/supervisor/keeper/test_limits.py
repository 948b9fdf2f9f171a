"""What an agent may use is enforced, or said not to be."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.supervisor.keeper import conftest

from kt_supervisor.keeper import cgroup, limits, specification

Start = Callable[..., conftest.Run]
MB = 1024 * 1024


def enforced(run: conftest.Run) -> dict[str, str]:
    run.agent_pid()
    found = json.loads(run.files.record.read_bytes())["limits"]
    assert isinstance(found, dict)
    return found


def test_without_a_cgroup_memory_and_files_are_rlimits_and_the_rest_is_not_enforced(start: Start) -> None:
    wanted = {"memory_bytes": 100 * MB, "cpu_cores": 0.5, "pids": 5, "nofile": 50}
    code = "import resource as r; print(r.getrlimit(r.RLIMIT_DATA), r.getrlimit(r.RLIMIT_NOFILE))"
    run = start(conftest.python(code), limits=wanted)

    run.ended()

    found = enforced(run)
    assert (found["memory"], found["nofile"]) == ("rlimit", "rlimit")
    assert found["cpu"].startswith("not enforced: no cgroup to make one in")
    assert "all processes of the user" in found["pids"]
    assert run.output() == b"(104857600, 104857600) (50, 50)\n"
    assert json.loads(run.files.record.read_bytes())["cgroup"] is None


def test_an_agent_that_wants_more_memory_than_it_may_does_not_get_it(start: Start) -> None:
    code = "import sys\ntry: data = bytearray(200 << 20)\nexcept MemoryError: sys.exit(9)"
    run = start(conftest.python(code), limits={"memory_bytes": 100 * MB})

    assert run.ended()["code"] == 9


def test_address_space_that_is_only_reserved_is_no_memory(start: Start) -> None:
    # What V8, JavaScriptCore and Go do at their start: RLIMIT_AS would end them right there.
    code = "import mmap; m = mmap.mmap(-1, 8 << 30, prot=0, flags=mmap.MAP_PRIVATE | mmap.MAP_ANON)"
    run = start([*conftest.python("")[:1], "-c", code], limits={"memory_bytes": 100 * MB})

    assert run.ended()["code"] == 0


def test_descriptors_are_limited_in_everything_the_agent_starts(start: Start) -> None:
    run = start(["/bin/sh", "-c", "sh -c 'ulimit -n'"], limits={"nofile": 33})

    run.ended()

    assert run.output() == b"33\n"


def test_no_limits_are_no_limits(start: Start) -> None:
    run = start(["/bin/sh", "-c", "ulimit -d; ulimit -n"])
    here = subprocess.run(["/bin/sh", "-c", "ulimit -d; ulimit -n"], capture_output=True, check=True)

    run.ended()

    assert (enforced(run), run.output()) == ({}, here.stdout)


def test_a_hard_limit_below_what_is_wanted_is_said(tmp_path: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root may raise its hard limits")
    child = subprocess.Popen(["/bin/sh", "-c", "ulimit -n 50; read line"], stdin=subprocess.PIPE)
    spec = specification.parse(_specification(tmp_path, nofile=10_000))

    _, found = limits.enforce(spec, child.pid, note=lambda _: None)

    child.communicate(b"\n")
    assert found["nofile"].startswith("not enforced")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with the files of a cgroup that has controllers: the kernel's part, where this machine has none."""
    parent = tmp_path / "cgroup"
    leaf = parent / "kt-r"
    leaf.mkdir(parents=True)
    (parent / "cgroup.subtree_control").touch()
    for name in ("cgroup.procs", "memory.max", "pids.max", "cpu.max"):
        (leaf / name).touch()
    (leaf / "memory.events").write_text("low 0\noom 3\noom_kill 2\noom_group_kill 0\n")
    yield parent


def _specification(cwd: Path, *, cgroup_parent: str | None = None, **wanted: float) -> bytes:
    return specification.build(
        run_id="r",
        instance_id="i",
        name="n",
        state_dir="/s",
        argv=["/bin/true"],
        env={},
        cwd=str(cwd),
        engine_command=["/e"],
        engine_env={},
        limits=wanted,
        cgroup_parent=cgroup_parent,
    )


def test_with_controllers_the_cgroup_enforces_what_it_can(folder: Path) -> None:
    data = _specification(folder, cgroup_parent=str(folder), memory_bytes=MB, cpu_cores=1.5, pids=7)
    spec = specification.parse(data)

    leaf, found = limits.enforce(spec, 4711, note=lambda _: None)

    assert found == {"memory": "cgroup", "cpu": "cgroup", "pids": "cgroup"}
    assert leaf is not None
    written = {path.name: path.read_text() for path in Path(leaf.path).iterdir()}
    assert (written["memory.max"], written["pids.max"]) == (str(MB), "7")
    assert (written["cpu.max"], written["cgroup.procs"]) == ("150000 100000", "4711")
    assert leaf.out_of_memory_kills() == 2


def test_a_cgroup_without_controllers_says_so_and_falls_back(cgroup_parent: Path, start: Start) -> None:
    if (cgroup_parent / "memory.max").exists():
        pytest.skip("this machine has the controllers")
    wanted = {"memory_bytes": 100 * MB, "cpu_cores": 1, "pids": 7}
    run = start(["/bin/sleep", "1000"], limits=wanted, cgroup_parent=str(cgroup_parent))
    run.running()

    found = enforced(run)

    assert found["memory"] == "rlimit"
    assert "cpu.max" in found["cpu"]
    assert "pids.max" in found["pids"]
    leaf = Path(json.loads(run.files.record.read_bytes())["cgroup"])
    assert leaf.parent == cgroup_parent
    engine = run.engine()
    engine.ask(op="stop", timeout_s=0)
    assert run.ended(engine)["oom_killed"] is None


def test_a_parent_that_is_no_cgroup_limits_nothing_and_starts_the_agent(start: Start, tmp_path: Path) -> None:
    run = start(["/bin/true"], limits={"pids": 3}, cgroup_parent=str(tmp_path))

    assert run.ended()["code"] == 0
    assert str(tmp_path) in enforced(run)["pids"]


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"memory_bytes": 0}, "memory_bytes"),
        ({"pids": 1.5}, "whole"),
        ({"nofile": "many"}, "nofile"),
        ({"cpu_cores": -1}, "cpu_cores"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(tmp_path: Path, wanted: dict[str, float], why: str) -> None:
    with pytest.raises(specification.SpecificationInvalid, match=why):
        _specification(tmp_path, **wanted)


def test_what_an_agent_left_in_nested_cgroups_is_killed_and_removed(
    cgroup_parent: Path, start: Start
) -> None:
    nest = (
        "mkdir $0/inner && setsid sh -c 'echo $$ > '$0'/inner/cgroup.procs; echo in; exec sleep 1000' & wait"
    )
    leaf = cgroup_parent / "kt-run-0"
    run = start(["/bin/sh", "-c", nest, str(leaf)], cgroup_parent=str(cgroup_parent))
    run.said(b"in\n")
    engine = run.engine()

    engine.ask(op="stop", timeout_s=0)
    record = run.ended(engine)

    assert (record["survivors"], leaf.exists()) == ([], False)


def test_a_leaf_that_somebody_still_lives_in_is_not_removed(cgroup_parent: Path) -> None:
    child = subprocess.Popen(["/bin/sleep", "1000"])
    leaf = cgroup.create(str(cgroup_parent), "kt-x")
    leaf.enter(child.pid)

    assert (leaf.remove(), leaf.members()) == (False, [child.pid])
    with pytest.raises(FileExistsError):
        cgroup.create(str(cgroup_parent), "kt-x")
    assert leaf.kill()
    child.wait(conftest.DEADLINE_S)
    assert leaf.remove()

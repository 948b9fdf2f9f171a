"""A keeper without privileges, and processes that became somebody else's: named, never waited for without end."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.supervisor.keeper import conftest

from kt_supervisor.keeper import specification

NOBODY = 65534
# Loads everything first: the interpreter may live where nobody may look.
BOOTSTRAP = (
    "import os, sys\n"
    f"sys.path[:0] = {[str(conftest.REPOSITORY / room) for room in ('supervisor', 'ledger')]!r}\n"
    "from kt_supervisor.keeper import process\n"
    "import encodings.idna\n"
    f"os.setgroups([]); os.setresgid({NOBODY}, {NOBODY}, {NOBODY}); os.setresuid({NOBODY}, {NOBODY}, {NOBODY})\n"
    "sys.exit(process.main())\n"
)

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="changing users takes root")


def begin(tmp_path: Path, argv: list[str]) -> conftest.Run:
    state = tmp_path / "state"
    (state / "runs" / "r").mkdir(parents=True, mode=0o700)
    for folder in (state, state / "runs", state / "runs/r"):
        os.chown(folder, NOBODY, NOBODY)
    # Relative to the folder it is started in: nobody may not walk through the folders of root's tests.
    data = specification.build(
        run_id="r",
        instance_id="i",
        name="n",
        state_dir=".",
        argv=argv,
        env={"PATH": os.environ["PATH"]},
        cwd=".",
        engine_command=["/bin/false"],
        engine_env={},
        sweep_grace_s=0.05,
        interactive=True,
    )
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", BOOTSTRAP], stdin=subprocess.PIPE, cwd=state
    )
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.close()
    return conftest.Run(state, "r", process)


def test_a_keeper_of_an_ordinary_user_does_all_of_its_work(tmp_path: Path) -> None:
    run = begin(tmp_path, ["/bin/sh", "-c", "setsid sleep 1000 >&- 2>&- & echo $!; id -u; exec sleep 1000"])
    run.running()
    run.said(b"65534\n")
    engine = run.engine()

    engine.ask(op="stop", timeout_s=0)
    record = run.ended(engine)

    assert (record["signal"], record["survivors"]) == (9, [])
    assert not conftest.alive(int(run.output().split()[0]))
    assert run.files.exit.stat().st_uid == NOBODY
    run.end()


def test_a_survivor_of_another_user_is_named_after_five_seconds(
    tmp_path: Path, doomed: Callable[[int], int]
) -> None:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv is not on this machine")
    become_root = "./become-root --reuid 0 --regid 0 --clear-groups sleep 1000"
    script = f"{become_root} >&- 2>&- & echo $!; read x"
    run = begin(tmp_path, ["/bin/sh", "-c", f"while [ ! -u become-root ]; do sleep 0.01; done; {script}"])
    privileged = run.files.root / "become-root"
    shutil.copy(setpriv, run.files.root / "fresh")
    (run.files.root / "fresh").chmod(0o4755)
    (run.files.root / "fresh").rename(privileged)
    conftest.until(lambda: run.output().endswith(b"\n"))
    survivor = doomed(int(run.output()))
    conftest.until(lambda: Path(f"/proc/{survivor}/comm").read_text() == "sleep\n")

    with run.files.stdin.open("wb", buffering=0) as writer:
        writer.write(b"\n")
    record = run.ended()

    assert record["survivors"] == [survivor]
    assert record["code"] == 0
    assert conftest.alive(survivor)
    run.end()

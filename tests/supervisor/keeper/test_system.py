"""What is asked of the kernel, seen from outside."""

import os
import subprocess
import sys
from pathlib import Path

from tests.supervisor.keeper import conftest

from kt_ledger import process_identity

PATHS = os.pathsep.join(str(conftest.REPOSITORY / room) for room in ("supervisor", "ledger"))


def run(code: str) -> str:
    program = "import os, sys\nfrom kt_supervisor.keeper import system\n" + code
    ended = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": PATHS},
        capture_output=True,
        check=True,
        timeout=conftest.DEADLINE_S,
    )
    return ended.stdout.decode().strip()


def test_a_sibling_is_a_child_of_our_parent() -> None:
    code = (
        "readable, writable = os.pipe()\n"
        "parent = os.getppid()\n"
        "pid = system.fork_sibling()\n"
        "if pid == 0:\n"
        "    os.write(writable, b'%d' % os.getppid())\n"
        "    os._exit(0)\n"
        "try:\n"
        "    os.waitpid(pid, 0)\n"
        "    print('a child of ours')\n"
        "except ChildProcessError:\n"
        "    print(int(os.read(readable, 20)) == parent)\n"
    )

    assert run(code) == "True"


def test_a_subreaper_inherits_orphans_and_can_give_it_up() -> None:
    code = (
        "def orphan():\n"
        "    readable, writable = os.pipe()\n"
        "    pid = os.fork()\n"
        "    if not pid:\n"
        "        if os.fork(): os._exit(0)\n"
        "        os.read(gate[0], 1)\n"
        "        os.write(writable, b'%d' % os.getppid())\n"
        "        os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
        "    os.write(gate[1], b'x')\n"
        "    return int(os.read(readable, 20)) == os.getpid()\n"
        "gate = os.pipe()\n"
        "print(system.become_subreaper(True), orphan(), system.become_subreaper(False), orphan())\n"
    )

    assert run(code) == "True True True False"


def test_hidden_memory_is_not_dumpable() -> None:
    code = "import ctypes; system.hide_memory(); print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"

    assert run(code) == "0"


def test_the_boot_id_is_the_kernels() -> None:
    assert process_identity.boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()

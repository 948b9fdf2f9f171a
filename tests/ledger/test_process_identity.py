import os
import subprocess

from kt_ledger import process_identity


def test_a_boot_has_one_name() -> None:
    assert process_identity.boot_id() == process_identity.boot_id()


def test_a_later_process_has_later_ticks_and_one_that_has_gone_has_none() -> None:
    child = subprocess.Popen(["sleep", "600"])
    ours, later = process_identity.start_ticks(os.getpid()), process_identity.start_ticks(child.pid)
    child.kill()
    child.wait()

    assert 0 < ours <= later
    assert ours == process_identity.start_ticks()
    assert 0 == process_identity.start_ticks(child.pid)

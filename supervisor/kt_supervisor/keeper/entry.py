"""The keeper's beginning: its specification, its lock, its place in the process tree."""

import fcntl
import logging
import os
import sys

from kt_supervisor.keeper import logs, tree
from kt_supervisor.keeper.keeper import Keeper
from kt_supervisor.keeper.spec import Spec, SpecInvalid

logger = logging.getLogger("keeper")


def main() -> int:
    """Read the specification from standard input and keep its Run.

    Returns:
        The exit code: 0 kept to its end, 2 a bad specification, 4 the Run has a keeper.
    """
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    os.umask(0o077)
    if os.getpid() != os.getsid(0):
        os.setsid()
    try:
        spec = Spec.decode(sys.stdin.buffer.read())
    except SpecInvalid as error:
        logger.error("%s", error)
        return 2
    logs.prepare(spec.files.root)
    lock = os.open(spec.files.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        logger.error("run %s has a keeper already", spec.run_id)
        return 4
    tree.become_subreaper()
    tree.hide_from_siblings()
    return Keeper(spec, lock=lock).run()

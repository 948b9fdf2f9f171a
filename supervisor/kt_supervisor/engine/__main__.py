"""`python -m kt_supervisor.engine --state-dir DIR`: run the engine of one state directory until it is told to stop.

Exit codes: 0 told to stop, or another engine serves the directory already; 1 the directory cannot be used.
"""

import argparse
import asyncio
import contextlib
import gc
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from kt_ledger.layout import StateLayout
from kt_supervisor.engine import detaching, environment, state_dir

logger = logging.getLogger("engine")


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, and return the exit code."""
    gc.disable()  # nothing of what is imported is garbage: looking for it costs a tenth of the start
    parser = argparse.ArgumentParser(
        prog="kt-engine", description="Run the engine of one kt state directory."
    )
    parser.add_argument("--state-dir", required=True, type=Path)
    parser.add_argument("--foreground", action="store_true", help="stay in the terminal's session")
    parser.add_argument("--revive", action="store_true", help="end again where it was stopped on purpose")
    parser.add_argument("--detach", action="store_true", help="fork, and return once the engine serves")
    parser.add_argument(
        "--service", action="store_true", help="wait for an engine that runs to end, then serve"
    )
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    os.umask(0o077)
    environment.leave_run(sys.argv if arguments is None else None)
    announce = detaching.detach() if options.detach else detaching.nobody_waits
    files = StateLayout(options.state_dir.absolute())
    try:
        state_dir.prepare(files.root)
        lock = state_dir.take_lock(files, waits=options.service)
    except state_dir.StateDirUnusable as error:
        logger.error("%s", error)
        return 1
    except state_dir.EngineRuns as winner:
        logger.info("%s", winner)
        return 0
    if options.revive and files.engine_stopped.exists():
        # A keeper began to bring the engine back just before somebody stopped it: the stop is the later word.
        logger.info("the engine was stopped on purpose: not brought back")
        return 0
    if not options.foreground:
        with contextlib.suppress(PermissionError):
            os.setsid()  # it leads a group already: started as a session of its own, or by a shell in the foreground
    os.chdir(files.root)
    return _serve(files, lock, announce)


def _serve(files: StateLayout, lock: int, announce: Callable[[], None]) -> int:
    # Imported once the lock is ours: of fifty that start at once, forty-nine end before this.
    from kt_supervisor.engine.engine import Engine

    def serving() -> None:
        gc.freeze()
        gc.enable()
        announce()

    async def serve() -> None:
        await Engine(files, lock=lock).run(serving=serving)

    try:
        asyncio.run(serve())
    except OSError as error:
        logger.error(
            "the engine cannot serve %s: got %s, wanted a directory that takes a socket and a record; check its disk",
            files.root,
            error,
        )
        return 1
    finally:
        os.close(lock)
    return 0


if __name__ == "__main__":
    sys.exit(main())

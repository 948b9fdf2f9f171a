"""`python -m kt_addons --state-dir DIR`: run the gateway of one state directory in the foreground.

Exit codes: 0 asked to stop, 1 failed, 4 another gateway serves this state directory.
"""

import argparse
import asyncio
import gc
import logging
import os
import sys
from pathlib import Path

from kt_addons import lean_import

SWITCH_INTERVAL_S = 0.001
"""How long the journal's thread may have to wait for the interpreter after a sync (default 5 ms)."""


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, and return the exit code."""
    gc.disable()  # nothing of what is imported is garbage: looking for it costs a tenth of the start
    lean_import.skip_default_addons()
    from kt_addons import gateway_process, instance_meter  # not before its imports are made lean

    parser = argparse.ArgumentParser(
        prog="kt-gateway", description="Run the gateway of one kt state directory."
    )
    parser.add_argument("--state-dir", required=True, type=Path)
    parser.add_argument("--head-timeout-s", type=float, default=instance_meter.HEAD_TIMEOUT_S)
    given = parser.parse_args(arguments)
    state: Path = given.state_dir
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    os.umask(0o077)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.freeze()
    gc.enable()
    try:
        asyncio.run(gateway_process.serve(state.absolute(), head_timeout_s=given.head_timeout_s))
    except gateway_process.AlreadyRunning as refused:
        logging.getLogger("kt").error("%s", refused)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())

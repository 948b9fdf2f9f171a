"""`python -m bench` (or `make bench`): what kt costs here, in one run.

Prints the CPU of a metered call and of a streamed chunk (beside nginx where it is installed), the CPU of a whole
`kt agent list`, the time of `config get`, the memory of keepers, and the rate at which events become durable. Linux.
"""

import shutil
import subprocess
import sys

PARTS = {
    "command": "kt agent list, as a whole command, with a running engine",
    "config_get": "config get of an agent with 200 settings, as a request to a running engine",
    "keeper": "memory of ten keepers side by side",
    "ingest": "events committed a second, durable",
    "lane": "CPU of a metered call and of a streamed chunk",
}


def main() -> None:
    """Run each part in a process of its own; a part that cannot run here says why."""
    for part, what in PARTS.items():
        print(f"\n== {what}", flush=True)
        missing = [tool for tool in ("wrk", "nginx") if part == "lane" and not shutil.which(tool)]
        if missing:
            print(f"skipped: wants {' and '.join(missing)} (Debian: apt-get install wrk nginx-light)")
            continue
        subprocess.run([sys.executable, "-m", f"bench.{part}"], check=True)


main()

"""`python -I -S <this file>`: the keeper, from a source checkout or an installed wheel alike.

Neither site-packages nor the working directory is on the path: what is needed is found from this file's own place.
"""

import sys

_KEEPER = __file__.rpartition("/")[0]
_HOME = _KEEPER.rpartition("/")[0].rpartition("/")[
    0
]  # holds kt_supervisor: site-packages, or <repository>/supervisor
sys.path[:0] = [_HOME, _HOME.rpartition("/")[0] + "/ledger"]

from kt_supervisor.keeper import process  # noqa: E402 - the path comes first

if __name__ == "__main__":
    sys.exit(process.main())

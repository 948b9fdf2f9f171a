"""`python -I -S <this file>`: the keeper, from a source checkout or an installed wheel alike.

Neither site-packages nor the working directory is on the path: what is needed is found from this file's own place.
"""

import sys

_KEEPER = __file__.rpartition("/")[0]
# The folder that holds kt_supervisor: site-packages, or <repository>/supervisor.
_HOME = _KEEPER.rpartition("/")[0].rpartition("/")[0]
# At the end: a package that is called like a module of the standard library must not take its place.
sys.path += [_HOME, _HOME.rpartition("/")[0] + "/ledger"]

from kt_supervisor.keeper import process  # noqa: E402 - the path comes first

if __name__ == "__main__":
    sys.exit(process.main())

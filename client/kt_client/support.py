"""Whether agents can be run on this system at all."""

import socket
import sys

from kt_client.errors import Unsupported
from kt_ledger.exit_codes import UNSUPPORTED


def check() -> None:
    """Return where agents can be run.

    Raises:
        Unsupported: exit 5, on a system without Unix sockets: Windows.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise Unsupported(
            f"agents cannot be run on this system: got {sys.platform} without Unix sockets, wanted Linux or macOS; "
            "`kt adapter validate` works here, agents run in WSL 2 or on another machine",
            exit_code=UNSUPPORTED,
            code="unsupported_system",
        )

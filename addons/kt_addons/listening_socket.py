"""The socket that an instance's listener accepts on: borrowed from the keeper of a live Run, or bound here.

A keeper that does not answer in time still holds the port, so that it cannot be bound either: then both are tried
again, since giving up would leave an agent that runs without its listener.
"""

import asyncio
import errno
import socket
from pathlib import Path

from kt_gateway.admin import PortTaken
from kt_gateway.mitm import mode
from kt_ledger import lending
from kt_ledger.messages import Listener

TRIES = 4
PAUSE_S = 0.25


async def obtain(listener: Listener) -> tuple[socket.socket, socket.socket | None]:
    """Return the listening socket, and the connection to its lender where it was borrowed.

    Raises:
        PortTaken: nobody lends it, and the port is somebody else's.
    """
    for _ in range(TRIES - 1 if listener.borrow_from is not None else 0):
        try:
            return await _once(listener)
        except PortTaken:
            await asyncio.sleep(PAUSE_S)
    return await _once(listener)


async def _once(listener: Listener) -> tuple[socket.socket, socket.socket | None]:
    if listener.borrow_from is not None:
        try:
            keeper = Path(listener.borrow_from)
            endpoint, lender = await asyncio.to_thread(lending.borrow, keeper, listener.instance_id)
        except lending.LendingRefused:
            return bind(listener.port), None
        if endpoint.getsockname()[1] == listener.port:
            return endpoint, lender
        endpoint.close()
        lender.close()
    return bind(listener.port), None


def bind(port: int) -> socket.socket:
    """Return a listening socket at 127.0.0.1:`port`; raises PortTaken."""
    endpoint = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        endpoint.bind(("127.0.0.1", port))
        endpoint.listen(mode.BACKLOG)
    except OSError as error:
        endpoint.close()
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        raise PortTaken(f"port {port} of 127.0.0.1 cannot be had ({error.strerror}): give another") from error
    return endpoint

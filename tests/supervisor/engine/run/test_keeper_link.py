import asyncio
import contextlib
import socket
from pathlib import Path

import pytest

from kt_ledger import unix_socket
from kt_supervisor.engine.run.keeper_link import KeeperGone, KeeperLink


def test_a_stopped_keeper_whose_queue_is_full_holds_up_nobody(tmp_path: Path) -> None:
    async def connect() -> int:
        turns = 0
        connecting = asyncio.ensure_future(KeeperLink.connect(tmp_path / "s", within_s=0.3))
        while not connecting.done():
            turns += 1
            await asyncio.sleep(0)
        with pytest.raises(KeeperGone, match="no keeper answers"):
            connecting.result()
        return turns

    with unix_socket.bind(tmp_path / "s", backlog=0), contextlib.ExitStack() as waiting:
        first = waiting.enter_context(socket.socket(socket.AF_UNIX))
        unix_socket.connect(first, tmp_path / "s")

        assert 10 < asyncio.run(connect())

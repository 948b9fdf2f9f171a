import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.house import House, until

from kt_client import AsyncClient, Client
from kt_client.errors import EngineLate


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A real engine that somebody has stopped by a signal."""
    house = House(tmp_path_factory.mktemp("stopped"))
    house.boot()
    pid = int(house.ask("GET", "/v1/engine")["pid"])
    os.kill(pid, signal.SIGSTOP)
    until(lambda: ") T " in Path(f"/proc/{pid}/stat").read_text(), "it is stopped")
    yield house, pid
    os.kill(pid, signal.SIGCONT)
    house.end()


@pytest.mark.parametrize(
    "ask",
    [lambda root: Client(root).list(), lambda root: asyncio.run(_listed(root))],
    ids=["blocking", "asynchronous"],
)
def test_a_stopped_engine_is_named_at_once(stopped: Any, ask: Callable[[Path], Any]) -> None:
    house, pid = stopped

    with pytest.raises(EngineLate, match=f"kill -CONT {pid}") as caught:
        ask(house.root)

    assert (1, "engine_stopped_by_signal") == (caught.value.exit_code, caught.value.code)


async def _listed(root: Path) -> Any:
    return await AsyncClient(root).list()

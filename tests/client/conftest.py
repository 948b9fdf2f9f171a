"""The command with its scripted engine, as the command's own tests have them, and a place for a real engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Kt
from tests.cli.conftest import kt as kt
from tests.cli.conftest import one_kt as one_kt
from tests.cli.conftest import script as script
from tests.cli.conftest import shared_kt as shared_kt

from kt_client.blocking import Client


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client of a place of its own; whatever it started has ended afterwards."""
    made = Client(tmp_path / "state")
    yield made
    if made.engine_status()["running"]:
        made.engine_stop(everything=True)


@pytest.fixture
def shared_client(shared_kt: Kt) -> Client:
    """A client of a place without agents, whose engine may run already."""
    return shared_kt.client

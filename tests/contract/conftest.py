"""Every store that there is: each test of the contract runs on all of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kt_ledger.clock import ManualClock
from kt_ledger.store import Store
from kt_ledger.store.sqlite import open_store


def _sqlite(folder: Path) -> Callable[[], Store]:
    return lambda: open_store(folder / "ledger.db", clock=ManualClock())


@pytest.fixture(params=[_sqlite], ids=["sqlite"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Open the same ledger again; the caller closes the one it had."""
    opener: Callable[[], Store] = request.param(tmp_path)
    return opener

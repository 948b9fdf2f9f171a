"""The demo's provider, for tests of what the gateway does for agents that are metered."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kt_cli.demo import place
from kt_cli.demo.provider_process import ProviderProcess


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[ProviderProcess]:
    with ProviderProcess(place.fixtures(), tmp_path / "provider.ndjson") as provider:
        yield provider

"""Real engines for the tests of this room."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house import House
from tests.provider import Seen

from kt_cli.demo import place
from kt_cli.demo.provider_process import ProviderProcess


@pytest.fixture(scope="session")
def one_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A state directory that all claims share which need none of their own: an engine takes a second to begin."""
    house = House(tmp_path_factory.mktemp("house") / "state").boot()
    yield house
    house.end()


@pytest.fixture
def house(one_house: House) -> Iterator[House]:
    """A state directory whose engine answers, without agents; afterwards it has none either."""
    yield one_house
    if not one_house.answers():
        one_house.boot()
    for entry in one_house.ask("GET", "/v1/agents")["instances"]:
        one_house.ask("DELETE", f"/v1/agents/{entry['name']}?home=delete&force=1")


@pytest.fixture
def own_house(tmp_path: Path) -> Iterator[House]:
    """A state directory whose engine answers, for one claim alone."""
    house = House(tmp_path / "state").boot()
    yield house
    house.end()


@pytest.fixture
def empty_house(tmp_path: Path) -> Iterator[House]:
    """A state directory that is not there yet."""
    house = House(tmp_path / "state")
    yield house
    house.end()


@pytest.fixture(scope="session")
def one_provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProviderProcess]:
    """The demo's provider, for all claims about agents that are metered."""
    with ProviderProcess(place.fixtures(), tmp_path_factory.mktemp("provider") / "log.ndjson") as provider:
        yield provider


@pytest.fixture
def provider(one_provider: ProviderProcess) -> Seen:
    return Seen(one_provider)

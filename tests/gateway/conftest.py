"""One gateway process a test worker, one listener and one provider a test; own processes where switches are set."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.mitm.gateway import Gateway, Lane
from tests.gateway.mitm.provider import Provider, Script

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    running = Gateway(tmp_path_factory.mktemp("gateway") / "state").started()
    yield running
    running.close()


@pytest.fixture
def start_gateway(tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    running: list[Gateway] = []

    def start(*arguments: str, **environment: str) -> Gateway:
        running.append(Gateway(tmp_path / "state", *arguments, **environment).started())
        return running[-1]

    yield start
    for one in running:
        one.close()


@pytest.fixture
def make_provider() -> Iterator[Callable[..., Provider]]:
    made: list[Provider] = []

    def make(script: Script, **more: Any) -> Provider:
        made.append(Provider(script, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def make_lane(gateway: Gateway, make_provider: Callable[..., Provider]) -> Callable[..., Lane]:
    """Open a listener of its own on the shared gateway, in front of a provider with this script."""

    def make(
        script: Script, *, on: Gateway | None = None, upstream: str | None = None, **fields: Any
    ) -> Lane:
        head_script, tls = fields.pop("head_script", None), fields.pop("tls", None)
        provider = make_provider(script, head_script=head_script, tls=tls)
        return Lane(on or gateway, provider, f"i-{next(_numbers)}", upstream or provider.url, **fields)

    return make

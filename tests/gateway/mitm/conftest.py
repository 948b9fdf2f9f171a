"""One gateway a test file where its switches allow it, one provider a test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.mitm.gateway import Gateway
from tests.gateway.mitm.provider import Provider, Script

MakeProvider = Callable[..., Provider]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    running = Gateway(tmp_path / "state").started()
    yield running
    running.close()


@pytest.fixture
def start_gateway(tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    running: list[Gateway] = []

    def start(**environment: str) -> Gateway:
        running.append(Gateway(tmp_path / "state", **environment).started())
        return running[-1]

    yield start
    for one in running:
        one.close()


@pytest.fixture
def make_provider() -> Iterator[MakeProvider]:
    made: list[Provider] = []

    def make(script: Script, **more: Any) -> Provider:
        made.append(Provider(script, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()

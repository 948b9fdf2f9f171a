"""A client of the engine that never waits longer than whoever uses it has time."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from kt_client import Client
from kt_client.wire import Request
from kt_conformance.deadline import Deadline

WHOLE_S = 240.0


class BoundedClient(Client):
    """A client whose every call ends with the time that the present section has."""

    def __init__(self, state_dir: Path) -> None:
        super().__init__(state_dir)
        self.deadline = Deadline(WHOLE_S)

    def perform(self, request: Request) -> Any:
        """Ask, within what is left."""
        return super().perform(self._bounded(request))

    def lines(self, request: Request, *, reader: int | None = None) -> Iterator[Any]:
        """Yield lines, within what is left."""
        yield from super().lines(self._bounded(request), reader=reader)

    def _bounded(self, request: Request) -> Request:
        left_s = max(self.deadline.left_s, 0.5)
        return replace(request, timeout_s=min(request.timeout_s or left_s, left_s))

"""`Client`: every verb returns when it is answered. May be shared by threads: nothing is kept between two calls."""

from collections.abc import Callable, Iterator
from typing import Any

from kt_client import asking, ignition, variables
from kt_client.errors import EngineAway, KtError
from kt_client.link import Link
from kt_client.variables import Offer
from kt_client.verbs import Verbs
from kt_client.wire import Request


class Client(Verbs[dict[str, Any], Iterator[dict[str, Any]]]):
    """The verbs, blocking."""

    def perform(self, request: Request) -> Any:
        """Return the answer to a request of one's own making; the verbs all come down to this."""
        if (known := asking.without_engine(request, self.files)) is not None:
            return known
        link = Link(self.files.engine_socket, self.hears_version)
        try:
            return link.document(request)
        except KtError as error:
            if request.away is not None and isinstance(error, EngineAway):
                return request.away
            if not self.start_engine or not asking.is_asked_again(request, error):
                raise
        self._ignite()
        return link.document(request)

    def lines(self, request: Request, *, reader: int | None = None) -> Iterator[Any]:
        """Yield the lines of the answer to a request of one's own making; `Link.stream` has `reader`."""
        if (known := asking.without_engine(request, self.files)) is not None:
            yield from known
            return
        link = Link(self.files.engine_socket, self.hears_version)
        if not link.answers():
            if not self.start_engine:
                raise EngineAway(f"no engine answers at {link.path}", code="engine_away")
            self._ignite()
        yield from link.stream(request, reader=reader)

    def _offer(self, offer: Offer) -> dict[str, Any]:
        try:
            told = self.perform(offer.question)
        except KtError as error:
            if not variables.is_older(error):
                raise
            return self._ask(offer.with_all())
        return variables.told_of(self._ask(offer.with_chosen(told)), offer.remarks(told))

    def _ask(self, request: Request) -> dict[str, Any]:
        answer: dict[str, Any] = self.perform(request)
        return answer

    def _follow(self, request: Request) -> Iterator[dict[str, Any]]:
        return self.lines(request)

    def _work(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        return work()

    def _ignite(self) -> None:
        ignition.ensure(self.files)

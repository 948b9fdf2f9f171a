"""The verbs about settings: of one agent, or, with None in place of its name, of the fleet."""

from abc import ABC, abstractmethod
from typing import Any

from kt_client import variables
from kt_client.targets import about, query
from kt_client.variables import Offer
from kt_client.wire import Request
from kt_ledger.layout import StateLayout

UNUSED: dict[str, Any] = {"schema_version": 1, "entries": [], "alarms": [], "notices": []}
"""What is set for all agents in a state directory that was never used."""


class ConfigurationVerbs[Document](ABC):
    """A part of `verbs.Verbs`."""

    files: StateLayout

    def config_get(self, name: str | None, key: str | None = None, *, reveal: bool = False) -> Document:
        """Return the settings in effect, or one; `reveal`: secrets in the clear."""
        asked = query(key=key, reveal="1" if reveal else None)
        nothing = name is None and key is None and not self.files.fleet_config.exists()
        request = _settings(name, "GET", asked, unused=UNUSED if nothing else None)
        # A reference is looked up in this process's variables first, as at a start.
        return self._offer(variables.offered(request, None, inherits=False)) if reveal else self._ask(request)

    def config_set(self, name: str | None, key: str, value: str) -> Document:
        """Set one setting; the value is text, as on a command line."""
        order = _settings(name, "PUT", body={"key": key, "value": value})
        return self._offer(variables.offered(order, None, inherits=False, settings={key: value}))

    def config_unset(self, name: str | None, key: str) -> Document:
        """Forget what was set for a key."""
        return self._ask(_settings(name, "DELETE", query(key=key)))

    def config_text(self, name: str | None) -> Document:
        """Return the file that holds the settings, as text, for an editor; comments are part of it."""
        return self._ask(_settings(name, "GET", "/file"))

    def config_replace(self, name: str | None, text: str, *, was: str) -> Document:
        """Put an edited text in the place of the one that `config_text` gave, if nobody else changed it meanwhile."""
        return self._ask(_settings(name, "PUT", "/file", body={"text": text, "was": was}))

    def config_diff(self, name: str) -> Document:
        """Return how the next start differs from the last."""
        return self._ask(_settings(name, "GET", "/diff"))

    @abstractmethod
    def _offer(self, offer: Offer) -> Document:
        """Ask which variables are wanted, then ask with these."""

    @abstractmethod
    def _ask(self, request: Request) -> Document:
        """Ask, and give the document."""


def _settings(
    name: str | None, method: str, target: str = "", *, body: Any = None, unused: Any = None
) -> Request:
    if name is None:
        return Request(method=method, target=f"/v1/config{target}", body=body, unused=unused)
    return about(name, method, f"/config{target}", body=body)

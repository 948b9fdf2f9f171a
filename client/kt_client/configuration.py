"""The verbs about settings: of one agent, or, with None in place of its name, of the fleet."""

import os
from abc import ABC, abstractmethod
from typing import Any

from kt_client import variables
from kt_client.errors import KtError, WrongUse
from kt_client.targets import about, query
from kt_client.variables import Offer
from kt_client.wire import Request
from kt_ledger.exit_codes import USAGE
from kt_ledger.layout import StateLayout

DEFAULTS = {
    "autostart": "false",
    "logs.cap": "256M",
    "metering.listener_auth": "token",
    "pause.hold_s": "300",
    "restart.limit": "5",
    "restart.policy": "on-failure",
    "restart.reset_after": "600",
    "restart.window": "600",
}
"""What holds where nothing was ever set: the engine's own, which a test compares (decision 0070)."""


class ConfigurationVerbs[Document](ABC):
    """A part of `verbs.Verbs`."""

    files: StateLayout

    def config_get(self, name: str | None, key: str | None = None, *, reveal: bool = False) -> Document:
        """Return the settings in effect, or one; `reveal`: secrets in the clear."""
        asked = query(key=key, reveal="1" if reveal else None)
        unused = self._defaults(key) if self._is_fresh(name) else None
        request = _settings(name, "GET", asked, unused=unused)
        if unused is not None:
            return self._ask(request)  # there is no secret to reveal
        # A reference is looked up in this process's variables first, as at a start.
        offer = variables.offered(request, None, inherits=False, purpose="run")
        return self._offer(offer) if reveal else self._ask(request)

    def config_set(self, name: str | None, key: str, value: str) -> Document:
        """Set one setting; the value is text, as on a command line."""
        order = _settings(name, "PUT", body={"key": key, "value": value})
        return self._offer(
            variables.offered(order, None, inherits=False, settings={key: value}, purpose="run")
        )

    def config_unset(self, name: str | None, key: str) -> Document:
        """Forget what was set for a key."""
        unused = None
        if self._is_fresh(name):
            unused = _refused(
                f"nothing to unset: got {key}, wanted a key that is set in {self.files.fleet_config}; "
                "`kt config get` lists what is set, and where"
            )
        return self._ask(_settings(name, "DELETE", query(key=key), unused=unused))

    def config_text(self, name: str | None) -> Document:
        """Return the file that holds the settings, as text, for an editor; comments are part of it."""
        unused = None
        if self._is_fresh(name):
            file = str(self.files.fleet_config)
            unused = {"schema_version": 1, "name": None, "layer": "fleet", "file": file, "text": ""}
        return self._ask(_settings(name, "GET", "/file", unused=unused))

    def config_replace(self, name: str | None, text: str, *, was: str) -> Document:
        """Put an edited text in the place of the one that `config_text` gave, if nobody else changed it meanwhile."""
        return self._ask(_settings(name, "PUT", "/file", body={"text": text, "was": was}))

    def config_diff(self, name: str) -> Document:
        """Return how the next start differs from the last."""
        return self._ask(_settings(name, "GET", "/diff"))

    def _is_fresh(self, name: str | None) -> bool:
        """Tell whether, in an unused place, nobody has set anything for all agents; about one agent it never is."""
        return name is None and not os.path.lexists(self.files.fleet_config)

    def _defaults(self, key: str | None) -> dict[str, Any] | KtError:
        if key is not None and key not in DEFAULTS:
            return _refused(
                f"{key} is not set: nothing was ever set in {self.files.root}; wanted a key with a value; set it with "
                f"`kt config set {key} VALUE`; `kt config keys` lists every key"
            )
        entries = [
            {"key": name, "value": value, "source": "engine-default", "unvalidated": False}
            for name, value in DEFAULTS.items()
            if key in (None, name)
        ]
        return {"schema_version": 1, "entries": entries, "alarms": [], "notices": []}

    @abstractmethod
    def _offer(self, offer: Offer) -> Document:
        """Ask which variables are wanted, then ask with these."""

    @abstractmethod
    def _ask(self, request: Request) -> Document:
        """Ask, and give the document."""


def _refused(message: str) -> WrongUse:
    return WrongUse(message, exit_code=USAGE, code="key_not_set")


def _settings(
    name: str | None, method: str, target: str = "", *, body: Any = None, unused: Any = None
) -> Request:
    if name is None:
        return Request(method=method, target=f"/v1/config{target}", body=body, unused=unused)
    return about(name, method, f"/config{target}", body=body)

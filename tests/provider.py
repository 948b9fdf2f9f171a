"""The replaying provider as a judge: what it has seen since a test began, and its last word about it."""

from typing import Protocol

from tests.house import until

from kt_cli.demo.provider_log import ProviderCall
from kt_cli.demo.provider_process import ProviderProcess


class Judge(Protocol):
    """Whoever can say which calls the provider has seen."""

    def calls(self) -> list[ProviderCall]: ...


class Seen:
    """A provider that other tests use as well: its address, and the calls since this was made."""

    def __init__(self, provider: ProviderProcess) -> None:
        self._provider = provider
        self._before = len(provider.calls())
        self.url = provider.url

    def calls(self) -> list[ProviderCall]:
        return self._provider.calls()[self._before :]


def all_answered(provider: Judge) -> list[ProviderCall]:
    """Return the provider's calls, once it has noted the end of each: it notes after the last byte has left."""

    def answered() -> tuple[list[ProviderCall]] | None:
        calls = provider.calls()
        return (calls,) if all(call.answered for call in calls) else None

    return list(until(answered, "the provider has noted how each call ended")[0])

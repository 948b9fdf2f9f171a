"""kt as a library: the verbs of `kt agent` and `kt engine`, for programs, blocking and asynchronous.

    from kt_client import Client

`Client` and `AsyncClient` are imported when they are first named, so that a program that only blocks never pays for
asyncio. Nothing here installs a handler, changes the environment, looks for a terminal or keeps anything open between
two calls.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kt_client.asynchronous import AsyncClient as AsyncClient
    from kt_client.blocking import Client as Client

_HOMES = {"Client": "kt_client.blocking", "AsyncClient": "kt_client.asynchronous"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kt_client' has no attribute {name!r}; it has {', '.join(_HOMES)}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)

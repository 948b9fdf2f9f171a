"""What an instance's settings say about its traffic: where it goes, who may send it, with whose key. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from kt_manifest.configuration import options
from kt_manifest.configuration.value_types import Value

KEYS = frozenset({options.UPSTREAM_BASE_URL, options.UPSTREAM_API_KEY, options.LISTENER_AUTH})
"""The settings that a listener follows from."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A provider; `key` is clear text: it goes to the gateway and nowhere else.

    `key_missing`: a key is configured, but nobody knows it now.
    """

    url: str
    auth: str
    key: str | None = field(default=None, repr=False)
    key_missing: bool = False


def upstream(values: Mapping[str, Value], *, key_missing: bool = False) -> Upstream | None:
    """Return the provider that resolved settings name; None where they name none."""
    url = values.get(options.UPSTREAM_BASE_URL)
    if not isinstance(url, str):
        return None
    key = values.get(options.UPSTREAM_API_KEY)
    auth = values.get(options.LISTENER_AUTH, "token")
    return Upstream(url, str(auth), key if isinstance(key, str) and not key_missing else None, key_missing)


def origin(port: int, token: str) -> str:
    """Return the address of a listener, for clients that add the provider's path themselves."""
    return f"http://127.0.0.1:{port}/{token}"


def base_url(port: int, token: str, url: str) -> str:
    """Return the address of a listener with the path of the provider's base URL."""
    return origin(port, token) + urlsplit(url).path.rstrip("/")

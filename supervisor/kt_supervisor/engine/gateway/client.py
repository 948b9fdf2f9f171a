"""The gateway's admin socket, as an HTTP client sees it (`kt_ledger.messages` lists the calls)."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import aiohttp

from kt_ledger import unix_socket
from kt_ledger.messages import Listener, ListenerKey, Status

CALL_TIMEOUT_S = 15.0
FLUSH_TIMEOUT_S = 2.0
KEY_TIMEOUT_S = 2.0
"""How long the adoption of a Run waits for the key: the agent prints meanwhile, and nobody reads it."""


class GatewayAway(Exception):
    """No gateway answers at this moment."""


class PortTaken(Exception):
    """Somebody else listens on the port that was asked for."""


class ListenerRefused(Exception):
    """The gateway cannot serve such a listener; the message is its own."""


class GatewayClient:
    """Calls of one gateway. An asynchronous context manager; every call raises GatewayAway where nobody answers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open = contextlib.AsyncExitStack()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Prepare; nothing is sent yet."""
        try:
            name = self._open.enter_context(unix_socket.reachable(self._path))
        except OSError as error:
            raise GatewayAway(str(error)) from error
        self._session = await self._open.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(path=name), trust_env=False)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of all connections."""
        await self._open.aclose()

    async def status(self, *, timeout_s: float = CALL_TIMEOUT_S) -> Status:
        """Return who the gateway is and what it holds."""
        return Status.from_json(await self._call("GET", "/v1/status", timeout_s=timeout_s))

    async def put(self, listener: Listener, *, timeout_s: float = CALL_TIMEOUT_S) -> int:
        """Make or change a listener; return its port. Raises PortTaken, ListenerRefused."""
        path = f"/v1/listeners/{listener.instance_id}"
        answer = await self._call("PUT", path, listener.to_json(), timeout_s=timeout_s)
        return int(answer["port"])

    async def delete(self, instance_id: str) -> None:
        """Remove a listener; one that is not there is no error."""
        with contextlib.suppress(ListenerRefused):
            await self._call("DELETE", f"/v1/listeners/{instance_id}")

    async def key(self, instance_id: str) -> str | None:
        """Return the key that an instance's calls carry; None where there is none, or the gateway does not tell.

        One of a version that does not know this question answers it like any page that is not there.
        """
        path = f"/v1/listeners/{instance_id}/key"
        try:
            answer = await self._call("GET", path, timeout_s=KEY_TIMEOUT_S, page=True)
            return ListenerKey.from_json(answer).upstream_api_key
        except (ListenerRefused, KeyError, TypeError):
            return None

    async def flush(self) -> None:
        """Have everything counted so far written to the journal; a read does not wait for a gateway that hangs."""
        await self._call("POST", "/v1/flush", timeout_s=FLUSH_TIMEOUT_S)

    async def drain(self, timeout_s: float) -> None:
        """Have the gateway end by itself, once its streams have ended, or after `timeout_s`."""
        await self._call("POST", "/v1/drain", {"timeout_s": timeout_s}, timeout_s=timeout_s + CALL_TIMEOUT_S)

    async def progress(self) -> AsyncIterator[None]:
        """Yield after each write to the journal; ends when the gateway does."""
        assert self._session is not None
        unlimited = aiohttp.ClientTimeout(total=None)
        try:
            async with self._session.get("http://gateway/v1/progress", timeout=unlimited) as answer:
                async for _ in answer.content:
                    yield
        except (aiohttp.ClientError, OSError):
            return

    async def _call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        timeout_s: float = CALL_TIMEOUT_S,
        page: bool = False,
    ) -> Any:
        """Return the answer's document; `page`: a path that is not there is ListenerRefused, in whatever words."""
        assert self._session is not None
        limit = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self._session.request(
                method, f"http://gateway{path}", json=body, timeout=limit
            ) as answer:
                if page and answer.status == 404:
                    raise ListenerRefused("the gateway has no such listener, or does not know the question")
                document = json.loads(await answer.read() or b"{}")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise GatewayAway(f"the gateway does not answer: {str(error) or type(error).__name__}") from error
        if answer.status == 409:
            raise PortTaken(document.get("message", "the port is taken"))
        if answer.status >= 300:
            raise ListenerRefused(document.get("message", f"the gateway answered {answer.status}"))
        return document


async def probe(url: str, *, timeout_s: float = 5.0) -> int:
    """Return the status of a GET of `url`. Raises GatewayAway where nobody answers."""
    try:
        async with (
            aiohttp.ClientSession(trust_env=False) as session,
            session.get(url, timeout=aiohttp.ClientTimeout(total=timeout_s)) as answer,
        ):
            return answer.status
    except (aiohttp.ClientError, OSError) as error:
        raise GatewayAway(f"no answer at the listener: {error or type(error).__name__}") from error

"""mitmproxy as we run it: a bare Master with four addons, listeners only by our own hand, no certificates made.

None of mitmproxy's default addons: no recording, no onboarding page, no terminal. `connection_strategy` is lazy, and
silent calls are never cut (`tcp_timeout`).
"""

from pathlib import Path

from mitmproxy import master, options
from mitmproxy.addons import core, proxyserver
from mitmproxy.proxy import mode_specs, server_hooks

from kt_addons.dispatcher import Dispatcher
from kt_gateway.mitm.upstream_tls import UpstreamTrust, gather_authorities

NEVER_S = 10 * 365 * 86400
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Proxyserver(proxyserver.Proxyserver):
    """mitmproxy's own, with a guard against calling ourselves that does not look at every listener each time."""

    name = "proxyserver"

    def __init__(self, dispatcher: Dispatcher) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._dispatcher = dispatcher

    def server_connect(self, data: server_hooks.ServerConnectionHookData) -> None:
        """Refuse an upstream that is one of our own listeners: calls would go round for ever."""
        assert data.server.address is not None
        host, port = data.server.address[:2]
        if host in _LOOPBACK and port in self._dispatcher.ports:
            data.server.error = "the upstream is a listener of this gateway itself"

    async def serve(self, specs: list[str]) -> None:
        """Run exactly the listeners of these modes."""
        await self.servers.update([mode_specs.ProxyMode.parse(spec) for spec in specs])


def make(dispatcher: Dispatcher, *, authorities: Path) -> tuple[master.Master, Proxyserver]:
    """Return a master inside the running loop, and its proxy server; `authorities` is a file of ours to write."""
    settings = options.Options()
    made = master.Master(settings, with_termlog=False)
    servers = Proxyserver(dispatcher)
    made.addons.add(core.Core(), servers, UpstreamTrust(), dispatcher)
    hashed = gather_authorities(authorities)
    settings.update(
        ssl_verify_upstream_trusted_ca=str(authorities), ssl_verify_upstream_trusted_confdir=hashed
    )
    settings.update(
        mode=[], connection_strategy="lazy", tcp_timeout=NEVER_S, http2=False, upstream_cert=False
    )
    return made, servers

"""TLS to a provider by mitmproxy's own layer and settings, verified against the system's authorities and certifi's.

mitmproxy's TlsConfig makes a certificate authority of its own at start, which nothing here needs: ours does not.
"""

import ssl
from typing import Any

import certifi
from mitmproxy import connection
from mitmproxy.addons import tlsconfig
from mitmproxy.proxy import layer, layers
from mitmproxy.proxy.tunnel import TunnelState
from mitmproxy.tls import TlsData

ALPN = (b"http/1.1",)


class UpstreamTls(layers.ServerTLSLayer):
    """A TLS tunnel that can be opened again to a new connection, as a lane does between two exchanges."""

    def renew(self, server: connection.Server) -> None:
        """Forget the session; the next OpenConnection is `server`'s."""
        self.conn = self.tunnel_connection = server
        self.context.server = server
        server.tls = True
        server.alpn_offers = ALPN
        self.tunnel_state = TunnelState.INACTIVE

    def start_tls(self) -> layer.CommandGenerator[None]:
        """Begin a handshake, whatever session there was before."""
        self.tls = None  # type: ignore[assignment]  # the parent's own initial value
        yield from super().start_tls()


class UpstreamTrust(tlsconfig.TlsConfig):
    """The hook that makes TLS contexts for upstream connections; without certificates of its own."""

    name = "upstreamtrust"

    def __init__(self) -> None:
        self._widened: set[int] = set()

    def running(self) -> None:
        """Leave out what TlsConfig does for interception."""

    def configure(self, updated: set[str]) -> None:
        """Leave out what TlsConfig does for interception."""

    def tls_start_server(self, tls_start: TlsData) -> None:
        """Give the connection a verifying context that trusts what this machine trusts."""
        super().tls_start_server(tls_start)
        assert tls_start.ssl_conn is not None
        context: Any = tls_start.ssl_conn.get_context()
        if id(context) in self._widened:
            return  # mitmproxy caches its contexts for good
        context.load_verify_locations(certifi.where())
        # Honours SSL_CERT_FILE and SSL_CERT_DIR, as OpenSSL itself does.
        system = ssl.get_default_verify_paths()
        if system.cafile or system.capath:
            context.load_verify_locations(system.cafile, system.capath)
        self._widened.add(id(context))

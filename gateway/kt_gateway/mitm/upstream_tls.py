"""TLS to a provider by mitmproxy's own layer and settings, verified against the system's authorities and certifi's.

mitmproxy's TlsConfig makes a certificate authority of its own at start, which nothing here needs: ours does not.
"""

import ssl
from pathlib import Path

import certifi
from mitmproxy import connection
from mitmproxy.addons import tlsconfig
from mitmproxy.proxy import layer, layers
from mitmproxy.proxy.tunnel import TunnelState

from kt_ledger import durable

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
        """Leave out what TlsConfig prepares for interception."""

    def running(self) -> None:
        """Leave out what TlsConfig does for interception."""

    def configure(self, updated: set[str]) -> None:
        """Leave out what TlsConfig does for interception."""


def gather_authorities(into: Path) -> str | None:
    """Write certifi's and the system's authorities into one file, which mitmproxy takes; it takes only one.

    Honours SSL_CERT_FILE and SSL_CERT_DIR, as OpenSSL itself does.

    Returns:
        The system's folder of hashed certificates, where it has one.
    """
    system = ssl.get_default_verify_paths()
    bundle = Path(certifi.where()).read_bytes()
    if system.cafile:
        bundle += b"\n" + Path(system.cafile).read_bytes()
    durable.replace_file(into, bundle)
    return system.capath

"""The internals of mitmproxy that the gateway stands on: where one of these fails, an upgrade needs work."""

import asyncio
import dataclasses
import inspect
from importlib.metadata import version
from typing import get_args

import pytest
from mitmproxy import connection, hooks, master, options
from mitmproxy.addons import core, proxyserver, tlsconfig
from mitmproxy.net import tls as net_tls
from mitmproxy.proxy import commands, events, layer, mode_servers, mode_specs, server, tunnel
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import tls

from kt_gateway.mitm import hooks as our_hooks
from kt_gateway.mitm import mode
from kt_gateway.mitm.connection import LaneConnection
from kt_gateway.mitm.upstream_tls import UpstreamTls


def test_the_version_is_the_one_that_was_read() -> None:
    assert version("mitmproxy").startswith("12.3.")


def test_a_mode_is_found_by_the_name_of_its_class_and_its_server_by_the_mode() -> None:
    parsed = mode_specs.ProxyMode.parse("instance:some-id@127.0.0.1:8123")

    assert isinstance(parsed, mode.InstanceMode)
    assert (parsed.data, parsed.custom_listen_host, parsed.custom_listen_port) == (
        "some-id",
        "127.0.0.1",
        8123,
    )
    made = mode_servers.ServerInstance.make(parsed, proxyserver.Proxyserver())
    assert isinstance(made, mode.InstanceServer)
    assert get_args(mode.InstanceServer.__orig_bases__[0]) == (mode.InstanceMode,)  # type: ignore[attr-defined]


@pytest.mark.parametrize("spec", ["instance:@127.0.0.1:1", "instance:x", "instance"])
def test_a_mode_of_nobody_or_nowhere_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="wanted instance"):
        mode_specs.ProxyMode.parse(spec)


def test_a_server_is_started_through_listen_and_serves_through_handle_stream() -> None:
    assert list(inspect.signature(mode_servers.AsyncioServerInstance.listen).parameters) == [
        "self",
        "host",
        "port",
    ]
    parameters = list(inspect.signature(mode_servers.ServerInstance.handle_stream).parameters)
    assert parameters == ["self", "reader", "writer"]
    source = inspect.getsource(mode_servers.AsyncioServerInstance._start)
    assert "self._servers = await self.listen(host, port)" in source
    source = inspect.getsource(mode_servers.ServerInstance.handle_stream)
    for line in (
        "ProxyConnectionHandler(",
        "self.manager.register_connection(",
        "await handler.handle_client()",
    ):
        assert line in source


def test_a_connection_handler_is_made_as_we_make_it_and_reads_through_handle_connection() -> None:
    parameters = list(inspect.signature(mode_servers.ProxyConnectionHandler).parameters)
    assert parameters == ["master", "r", "w", "options", "mode"]
    for name in ("handle_client", "open_connection"):
        assert "self.handle_connection(" in inspect.getsource(getattr(server.ConnectionHandler, name))
    assert issubclass(LaneConnection, mode_servers.ProxyConnectionHandler)
    assert {"handler", "reader", "writer"} == {
        field.name for field in dataclasses.fields(server.ConnectionIO)
    }
    assert "self.layer.handle_event(event)" in inspect.getsource(server.ConnectionHandler.server_event)


def test_the_original_reader_still_does_what_ours_replaces() -> None:
    source = inspect.getsource(server.ConnectionHandler.handle_connection)

    for line in (
        "await reader.read(65535)",
        "await self.server_event(events.DataReceived(connection, data))",
        "await self.drain_writers()",
        "connection.state &= ~ConnectionState.CAN_READ",
        "await self.server_event(events.ConnectionClosed(connection))",
        "await asyncio.Event().wait()",
        "self.transports.pop(connection)",
    ):
        assert line in source


def test_a_close_cancels_the_task_of_the_connection() -> None:
    assert "handler.cancel(" in inspect.getsource(server.ConnectionHandler.close_connection)
    assert list(inspect.signature(commands.CloseTcpConnection).parameters) == ["connection", "half_close"]


def test_our_hooks_are_named_as_the_addon_methods_and_pause_their_layer() -> None:
    assert (our_hooks.KtSettleHook.name, our_hooks.KtAdmitHook.name) == ("kt_settle", "kt_admit")
    assert hooks.all_hooks["kt_settle"] is our_hooks.KtSettleHook
    assert our_hooks.KtSettleHook(our_hooks.Moment("i")).blocking is True
    assert "await self.server_event(events.HookCompleted(hook))" in inspect.getsource(
        server.ConnectionHandler.hook_task
    )


def test_a_blocking_command_pauses_its_layer_and_keeps_the_events() -> None:
    class Waiting(layer.Layer):
        def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
            if isinstance(event, events.Start):
                yield our_hooks.KtSettleHook(our_hooks.Moment("i"))
            yield commands.Log(type(event).__name__)

    client = connection.Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2))
    waiting = Waiting(Context(client, options.Options()))

    (hook,) = waiting.handle_event(events.Start())
    while_paused = list(waiting.handle_event(events.DataReceived(client, b"x")))
    assert isinstance(hook, our_hooks.KtSettleHook)
    after = list(waiting.handle_event(events.HookCompleted(hook)))

    assert while_paused == []
    assert [command.message for command in after if isinstance(command, commands.Log)] == [
        "Start",
        "DataReceived",
    ]


def test_the_tls_layer_is_a_tunnel_whose_session_can_be_forgotten() -> None:
    assert issubclass(UpstreamTls, tls.ServerTLSLayer)
    assert issubclass(tls.ServerTLSLayer, tunnel.TunnelLayer)
    assert "assert not self.tls" in inspect.getsource(tls.TLSLayer.start_tls)
    assert {"INACTIVE", "ESTABLISHING", "OPEN", "CLOSED"} == {state.name for state in tunnel.TunnelState}
    source = inspect.getsource(tunnel.TunnelLayer)
    for name in ("self.tunnel_connection", "self.conn", "self.tunnel_state", "self.child_layer"):
        assert name in source


def test_upstream_tls_contexts_come_from_a_hook_that_verifies() -> None:
    source = inspect.getsource(tlsconfig.TlsConfig.tls_start_server)

    for line in (
        "verify = net_tls.Verify.VERIFY_PEER",
        "ca_path=ctx.options.ssl_verify_upstream_trusted_confdir",
        "ca_pemfile=ctx.options.ssl_verify_upstream_trusted_ca",
        "X509_VERIFY_PARAM_set1_host",
        "if not server.alpn_offers:",
    ):
        assert line in source
    assert "certstore" not in source
    assert net_tls.Verify.VERIFY_PEER.value != net_tls.Verify.VERIFY_NONE.value


def test_a_bare_master_starts_no_server_and_serves_what_it_is_told() -> None:
    async def work() -> None:
        made = master.Master(options.Options())
        servers = proxyserver.Proxyserver()
        made.addons.add(core.Core(), servers)
        made.options.update(mode=[], tcp_timeout=10**8, connection_strategy="lazy")
        running = asyncio.ensure_future(made.run())
        while not servers.is_running:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        assert list(servers.servers) == []
        assert await servers.servers.update([]) is True
        made.shutdown()
        await running

    asyncio.run(asyncio.wait_for(work(), 20))


def test_the_guard_against_self_connections_is_the_hook_that_we_override() -> None:
    assert "for server in self.servers" in inspect.getsource(proxyserver.Proxyserver.server_connect)
    assert 'self.addons.get("proxyserver")' in inspect.getsource(master.Master.run)

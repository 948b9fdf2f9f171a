"""A local model provider in a process of its own, which replays wire cases and keeps its own log.

    python -m kt_cli.demo.provider --fixtures DIR --log FILE [--port N] [--tls CERT KEY] [--until-eof]

Prints `{"port": N, "pid": P}` once it listens on 127.0.0.1. Laws: the bytes, their pieces, pauses and the end of the
connection are the case's own; a call is in the log before the first byte of its answer leaves. It knows nothing of kt's
gateway or ledger, which is what makes its log a judge.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import ssl
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

from kt_cli.demo import answer, wire_case
from kt_cli.demo.provider_log import ProviderLog
from kt_cli.demo.wire_request import MAX_HEAD_BYTES, RequestInvalid, WireRequest, read_request
from kt_ledger.clock import Clock, SystemClock

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Provider:
    """Serves connections: reads a request, logs it, plays the case, logs how that went."""

    def __init__(self, cases: Sequence[wire_case.Case], log: ProviderLog, *, clock: Clock) -> None:
        self._cases = cases
        self._log = log
        self._clock = clock
        self._calls = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until either side ends it."""
        writer.transport.set_write_buffer_limits(high=0)  # so that drain() means: handed to the kernel
        try:
            while (request := await read_request(reader, writer)) is not None:
                if not await self._answer(request, writer):
                    break
        except RequestInvalid as error:
            await _refuse(writer, str(error))
        except (ConnectionError, TimeoutError):
            pass  # the client left; what it got is in the log
        finally:
            writer.close()
            with contextlib.suppress(OSError, ssl.SSLError):
                await writer.wait_closed()

    async def _answer(self, request: WireRequest, writer: asyncio.StreamWriter) -> bool:
        document = request.document()
        asked = answer.asks_for_usage(document)
        case = self._case(request, document, asked)
        self._calls += 1
        call = f"call-{os.getpid()}-{self._calls:06d}"
        self._log.write(
            event="received",
            id=call,
            at_ns=self._clock.wall_ns(),
            case=case.name,
            method=request.method,
            path=request.path,
            model=str(document.get("model", "")),
            bytes=request.body_bytes,
            stream=document.get("stream") is True,
            include_usage=asked,
        )
        return await self._play(case, request, writer, call=call)

    def _case(self, request: WireRequest, document: dict[str, object], asked: bool) -> wire_case.Case:
        if (
            request.method == "GET"
            and request.path.endswith("/models")
            and answer.CASE_HEADER not in request.headers
        ):
            return answer.models(self._cases)
        return answer.as_asked(answer.choose(self._cases, request, document), include_usage=asked)

    async def _play(
        self, case: wire_case.Case, request: WireRequest, writer: asyncio.StreamWriter, *, call: str
    ) -> bool:
        head_only = request.method == "HEAD"
        sent, complete = 0, False
        try:
            for number, piece in enumerate(case.pieces()):
                if number and head_only:
                    break
                await asyncio.sleep(piece.pause_ms / 1000)
                writer.write(piece.data)
                await writer.drain()
                sent += len(piece.data) if number else 0
            complete = True
        finally:
            self._log.write(
                event="answered",
                id=call,
                at_ns=self._clock.wall_ns(),
                status=case.response.status,
                complete=complete,
                body_bytes=sent,
                usage=answer.reported_usage(case.response.body) if complete and not head_only else None,
            )
        return _hang_up(case.hang_up, writer) and request.keeps_alive


def _hang_up(how: str, writer: asyncio.StreamWriter) -> bool:
    """End the connection as the case says; True where it goes on."""
    if how == "reset":
        held = writer.get_extra_info("socket")
        held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        writer.transport.abort()
    return how == "keep"


async def _refuse(writer: asyncio.StreamWriter, why: str) -> None:
    body = json.dumps({"error": {"message": why, "code": "bad_request"}}).encode()
    head = f"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    with contextlib.suppress(ConnectionError):
        await writer.drain()


async def run(provider: Provider, arguments: argparse.Namespace) -> None:
    """Serve until SIGTERM, SIGINT or, with `--until-eof`, the end of standard input."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, ended.set)
    if arguments.until_eof:
        loop.add_reader(0, _end_at_eof, ended)
    context = None
    if arguments.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*arguments.tls)
    server = await asyncio.start_server(
        provider.serve, "127.0.0.1", arguments.port, ssl=context, limit=MAX_HEAD_BYTES, backlog=256
    )
    ready = {"port": server.sockets[0].getsockname()[1], "pid": os.getpid()}
    sys.stdout.write(json.dumps(ready) + "\n")
    sys.stdout.flush()
    await ended.wait()
    server.close()


def _end_at_eof(ended: asyncio.Event) -> None:
    if not os.read(0, 4096):
        ended.set()


def load_cases(fixtures: Path) -> list[wire_case.Case]:
    """Return all cases below `fixtures`, which is the folder that holds `wire`, or `wire` itself."""
    wire = fixtures / "wire"
    return wire_case.load_all(wire if wire.is_dir() else fixtures)


def main(argv: Sequence[str] | None = None) -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m kt_cli.demo.provider", description=__doc__)
    parser.add_argument(
        "--fixtures", type=Path, required=True, help="the folder that holds wire/<api>/<case>"
    )
    parser.add_argument("--log", type=Path, required=True, help="where to append the log (NDJSON)")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument(
        "--tls", nargs=2, metavar=("CERT", "KEY"), help="serve TLS with this pair of PEM files"
    )
    parser.add_argument("--until-eof", action="store_true", help="end when standard input does")
    arguments = parser.parse_args(argv)
    with ProviderLog(arguments.log) as log:
        asyncio.run(run(Provider(load_cases(arguments.fixtures), log, clock=SystemClock()), arguments))


if __name__ == "__main__":
    main()

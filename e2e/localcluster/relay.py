"""A relay from the machine's loopback into the cluster, so that a browser outside can look at what runs inside.

It listens on 127.0.0.1 of the machine only. Each connection inward is made by a thread that has entered the cluster's
network; a socket stays in the namespace in which it was made, so the rest runs anywhere.
"""

import asyncio
import contextlib
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from e2e.localcluster.api import Api
from e2e.localcluster.console import say
from e2e.localcluster.errors import LocalClusterError
from e2e.localcluster.holder import HOLDER, recorded_pid
from e2e.localcluster.layout import ClusterPaths
from e2e.localcluster.namespaces import CLONE_NEWNET, enter
from e2e.localcluster.processes import identify, record

MAX_PORT = 65_535
_CHUNK_BYTES = 64 * 1024
_TARGET = re.compile(r"(?:(?P<namespace>[a-z0-9-]+)/(?P<service>[a-z0-9-]+)|(?P<address>[0-9.]+)):(?P<port>\d+)")


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where connections go: an address, or a Service by namespace and name."""

    port: int
    address: str = ""
    namespace: str = ""
    service: str = ""


def parse_target(text: str) -> Target:
    """`10.247.3.4:9090` or `monitoring/prometheus:9090`.

    Raises:
        LocalClusterError: it is neither, or there is no such port.
    """
    found = _TARGET.fullmatch(text)
    if not found or not 1 <= int(found["port"]) <= MAX_PORT:
        raise LocalClusterError(
            f"{text!r} is no target: write ADDRESS:PORT or NAMESPACE/SERVICE:PORT, with a port of 1 to {MAX_PORT}."
        )
    parts = {name: value or "" for name, value in found.groupdict().items()}
    return Target(port=int(parts["port"]), address=parts["address"], namespace=parts["namespace"], service=parts["service"])


def resolve(api: Api, target: Target) -> str:
    """The address of a target.

    Raises:
        LocalClusterError: there is no such Service, or it has no address.
    """
    if target.address:
        return target.address
    answer = api.get(f"/api/v1/namespaces/{target.namespace}/services/{target.service}")
    address = answer.body["spec"].get("clusterIP") if answer is not None and answer.status == 200 else None
    if address in (None, "None"):
        raise LocalClusterError(f"There is no Service {target.namespace}/{target.service} with an address.")
    return str(address)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry bytes one way until the sender is done, then say so to the receiver."""
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


@dataclass(frozen=True, kw_only=True)
class Relay:
    """Accepts outside, dials inside."""

    dialers: ThreadPoolExecutor
    address: str
    port: int

    def dial(self) -> socket.socket:
        """Connect, in a thread inside the cluster's network."""
        return socket.create_connection((self.address, self.port), timeout=10)

    async def serve(self, outer: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        """Carry one connection both ways to its end."""
        try:
            inner = await asyncio.get_running_loop().run_in_executor(self.dialers, self.dial)
        except OSError as error:
            say(f"relay: {self.address}:{self.port} cannot be reached: {error}")
            answer.close()
            return
        inner.settimeout(0)
        reader, writer = await asyncio.open_connection(sock=inner)
        await asyncio.gather(pump(outer, writer), pump(reader, answer))
        for end in (writer, answer):
            end.close()


async def accept(relay: Relay, port: int) -> None:
    """Listen on the machine's loopback until cancelled.

    Raises:
        LocalClusterError: the port cannot be had.
    """
    try:
        server = await asyncio.start_server(relay.serve, "127.0.0.1", port)
    except OSError as error:
        raise LocalClusterError(
            f"The relay cannot listen on 127.0.0.1:{port} ({error.strerror}). Choose another port."
        ) from error
    async with server:
        await server.serve_forever()


def run_relay(paths: ClusterPaths, port: int, target_text: str, pid: int) -> None:
    """Relay until interrupted, or until the cluster goes down, which ends us by our record.

    Raises:
        ClusterNotRunningError: there is no cluster to relay into.
        LocalClusterError: no such target, or the port is taken.
    """
    target = parse_target(target_text)
    recorded_pid(paths, HOLDER)
    address = resolve(Api(paths), target)
    record(paths.processes, identify(f"relay-{port}", pid))
    namespace = paths.network_namespace_file
    with ThreadPoolExecutor(max_workers=8, initializer=enter, initargs=(namespace, CLONE_NEWNET)) as dialers:
        say(f"http://127.0.0.1:{port} leads to {target_text} ({address}); end with Ctrl-C")
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(accept(Relay(dialers=dialers, address=address, port=target.port), port))

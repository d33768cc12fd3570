"""A way to the engine of a pod, past its gateway: it listens on the pod's loopback only.

`kubectl port-forward` ends as a whole when one client goes away in the middle of an answer, which the contract's tests do. So
a process in the pod's network namespace takes connections from a socket that was opened in ours.
"""

import asyncio
import contextlib
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CHUNK_BYTES: Final = 65_536


@contextmanager
def passage(container_id: str, port: int) -> Iterator[str]:
    """A loopback URL that leads to `port` on the loopback of a container's pod. Needs root, on the container's own machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        inside = ["nsenter", f"--net=/proc/{process_of(container_id)}/ns/net", sys.executable, "-m", "e2e.vllm.passage"]
        command = [*inside, str(listener.fileno()), str(port)]
        with subprocess.Popen(command, cwd=ROOT, pass_fds=[listener.fileno()]) as process:
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                process.terminate()


def process_of(container_id: str) -> int:
    """A process of a container.

    Args:
        container_id: as in a pod's status, `containerd://...`.

    Raises:
        ProcessLookupError: no process of this machine is in it.
    """
    bare = container_id.rpartition("/")[2]
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and re.search(rf"\b{bare}\b", (folder / "cgroup").read_text()):
                return int(folder.name)
    raise ProcessLookupError(f"no process of container {bare} on this machine")


async def _serve(listener: socket.socket, port: int) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        engine_reader, engine_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_copy(reader, engine_writer), _copy(engine_reader, writer))

    server = await asyncio.start_server(connected, sock=listener)
    await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    asyncio.run(_serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])))

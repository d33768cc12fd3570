"""What the machine itself has and sends, read in its own namespaces wherever the test runs."""

import contextlib
import ipaddress
import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from e2e.localcluster.inside import machine_pid
from e2e.localcluster.layout import cache
from e2e.localcluster.namespaces import call_in_network

# Pods, the API server and services: see e2e/localcluster/network.py.
CLUSTER_RANGES = tuple(map(ipaddress.ip_network, ("10.245.0.0/16", "10.246.0.1/32", "10.247.0.0/16")))
_ALL_PROTOCOLS = 3  # ETH_P_ALL: outgoing packets too
_VERSION_4 = 4


def own_network() -> Path:
    """The machine's own network namespace."""
    return Path(f"/proc/{machine_pid(cache())}/ns/net")


def outside(*command: str) -> str:
    """Run a command in the machine's own namespaces."""
    words = ["nsenter", f"--target={machine_pid(cache())}", "--net", "--mount", "--", *command]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def without_counters(entry: dict[str, Any]) -> dict[str, Any]:
    """What of an interface is configured; lifetimes of addresses count down."""
    addresses = [{key: info.get(key) for key in ("family", "local", "prefixlen", "scope")} for info in entry.get("addr_info", ())]
    return {"name": entry["ifname"], "flags": entry["flags"], "master": entry.get("master"), "addresses": addresses}


def network() -> dict[str, object]:
    """The machine's interfaces, routes, rules, packet tables and forwarding."""
    routes = json.loads(outside("ip", "-json", "route", "show", "table", "all"))
    return {
        "interfaces": [without_counters(entry) for entry in json.loads(outside("ip", "-json", "address"))],
        "routes": sorted(json.dumps(route, sort_keys=True) for route in routes),
        "rules": outside("ip", "rule"),
        "tables": outside("nft", "list", "ruleset"),
        "forwarding": outside("cat", "/proc/sys/net/ipv4/ip_forward"),
    }


def traces(name: str) -> dict[str, list[str]]:
    """Mounts, folders and processes on the machine that carry a cluster's name."""
    mounts = [line for line in outside("cat", "/proc/self/mounts").splitlines() if f"/{name}/" in line]
    folders = [str(path) for path in (Path("/run/warmfront") / name, Path("/run/netns") / f"warmfront-{name}") if path.exists()]
    return {"mounts": mounts, "folders": folders, "processes": command_lines(name)}


def command_lines(name: str) -> list[str]:
    """The processes whose command line names the folders of a cluster."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if f"/clusters/{name}/" in words or f"/warmfront/{name}/" in words:
                found.append(words)
    return found


def destination(packet: bytes) -> ipaddress.IPv4Address | None:
    """Where an IPv4 packet goes; None for other protocols."""
    whole = len(packet) >= 20 and packet[0] >> 4 == _VERSION_4
    return ipaddress.IPv4Address(packet[16:20]) if whole else None


@dataclass(kw_only=True)
class Sniffer:
    """Every IPv4 destination that passed any interface of the machine's own network."""

    seen: set[ipaddress.IPv4Address] = field(default_factory=set)

    def to_cluster(self) -> list[str]:
        """Those that belong to a cluster."""
        return sorted(str(address) for address in self.seen if any(address in span for span in CLUSTER_RANGES))

    def listen(self, source: socket.socket, stop: threading.Event) -> None:
        """Collect until told to stop."""
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                if address := destination(source.recv(64)):
                    self.seen.add(address)


def packet_socket() -> socket.socket:
    """Sees every packet of the machine's own network, both ways, without its link header."""
    source = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ALL_PROTOCOLS))
    source.settimeout(0.1)
    return source


def touch_loopback(address: str) -> None:
    """Send a packet on the machine's loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"seen?", (address, 9))


@contextmanager
def sniffing() -> Iterator[Sniffer]:
    """Listen while the block runs."""
    sniffer, stop = Sniffer(), threading.Event()
    with call_in_network(own_network(), packet_socket) as source:
        thread = threading.Thread(target=sniffer.listen, args=(source, stop))
        thread.start()
        try:
            yield sniffer
        finally:
            stop.set()
            thread.join()

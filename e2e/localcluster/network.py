"""The addresses of a cluster. Each has a network namespace of its own, so that all clusters use the same ones."""

from typing import Final

API_ADDRESS: Final = "10.246.0.1"  # the API server, the nodes and the name server
API_PORT: Final = 6443
API_URL: Final = f"https://{API_ADDRESS}:{API_PORT}"
SERVICE_RANGE: Final = "10.247.0.0/16"
KUBERNETES_SERVICE: Final = "10.247.0.1"  # the first of the range is the API's own
CLUSTER_DOMAIN: Final = "cluster.local"
BRIDGE: Final = "wfapi0"
MAX_NODES: Final = 8  # a subnet and a few ports for each


def pod_subnet(node: int) -> str:
    """The addresses of the pods of one node."""
    return f"10.245.{node}.0/24"


def kubelet_port(node: int) -> int:
    """All nodes share one address, so each kubelet has a port of its own."""
    return 10250 + 100 * node


def kubelet_health_port(node: int) -> int:
    """The kubelet's health port, on loopback."""
    return 10248 + 100 * node

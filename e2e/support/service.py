"""One InferenceService in the cluster: it, what was made for it, and what the operator says of it."""

from dataclasses import dataclass
from typing import Any, Final

from e2e.support import kube
from e2e.support.install import NAMESPACE as OPERATOR_NAMESPACE
from e2e.support.readings import OperatorNumbers, operator_numbers

OPERATOR_PODS: Final = "--selector=app.kubernetes.io/component=operator"
OPERATOR_METRICS_PORT: Final = 8081
CHILDREN: Final = "deployments,services,configmaps,serviceaccounts,poddisruptionbudgets,pods"


@dataclass(frozen=True, kw_only=True)
class Watched:
    """Which one."""

    namespace: str
    name: str

    @property
    def pod_arguments(self) -> tuple[str, str]:
        """Arguments that list its pods."""
        return f"--namespace={self.namespace}", f"--selector=warmfront.dev/service={self.name}"

    def resource(self) -> dict[str, Any]:
        """The InferenceService."""
        return kube.get("inferenceservices.warmfront.dev", self.name, f"--namespace={self.namespace}")

    def pods(self) -> dict[str, Any]:
        """Its pods, as a list."""
        return kube.get("pods", *self.pod_arguments)

    def deployment(self) -> dict[str, Any]:
        """Its Deployment."""
        return kube.get("deployment", self.name, f"--namespace={self.namespace}")

    def left(self) -> list[str]:
        """The names of all that is there of it: the InferenceService, what the operator made for it, and the pods."""
        service = ("inferenceservices.warmfront.dev", self.name, f"--namespace={self.namespace}", "--ignore-not-found")
        found = [kube.kubectl("get", *arguments, "--output=name") for arguments in (service, (CHILDREN, *self.pod_arguments))]
        return "".join(found).split()

    def delete(self) -> None:
        """Delete the InferenceService; its children and pods follow in the background."""
        kube.kubectl(
            "delete", "inferenceservices.warmfront.dev", self.name, f"--namespace={self.namespace}", "--ignore-not-found"
        )


def read_operator(watched: Watched) -> OperatorNumbers:
    """Read the operator's gauges of a service."""
    return operator_numbers(operator_metrics(), namespace=watched.namespace, name=watched.name)


def operator_metrics() -> str:
    """Read the operator's metrics from its pod, through the API server: finer in time than Prometheus' scrapes.

    Returns:
        Their text; empty where no operator runs.
    """
    pods = kube.get("pods", f"--namespace={OPERATOR_NAMESPACE}", OPERATOR_PODS)["items"]
    running = [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"]
    if not running:
        return ""
    path = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods/{running[0]}:{OPERATOR_METRICS_PORT}/proxy/metrics"
    return kube.kubectl("get", f"--raw={path}")

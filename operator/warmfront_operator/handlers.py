"""kopf's decorators. They only pass on what the watches bring; what is done about it is in `tick` and `reconcile`."""

from dataclasses import dataclass, field
from typing import Any, Final

import kopf

from warmfront_api import names
from warmfront_operator.domain import resources
from warmfront_operator.domain.resources import ChildKind, ServiceKey
from warmfront_operator.kube.access import credentials
from warmfront_operator.kube.client import PAGE
from warmfront_operator.kube.observe import Indices
from warmfront_operator.tick import Ticker

REGISTRY: Final = kopf.OperatorRegistry()
SERVICES: Final = (names.GROUP, names.VERSION, names.PLURAL)
WATCHED: Final = (  # only what carries our label is sent by the API server
    ("apps", "v1", "deployments"),
    ("policy", "v1", "poddisruptionbudgets"),
    ("", "v1", "services"),
    ("", "v1", "configmaps"),
    ("", "v1", "serviceaccounts"),
    ("", "v1", "pods"),
)


@dataclass
class Wiring:
    """What the handlers talk to. kopf copies it for each object, so all state is behind it."""

    ticker: Ticker
    generations: dict[str, int] = field(default_factory=dict)

    def noticed(self, uid: str, key: ServiceKey, generation: int) -> None:
        """Wake the ticker on a new spec; a new status is no news."""
        if self.generations.get(uid) != generation:
            self.generations[uid] = generation
            self.ticker.wake(key)


def settings() -> kopf.OperatorSettings:
    """Kopf without its traces in the cluster: no events, annotations, finalizers or peering, and no need to list CRDs."""
    found = kopf.OperatorSettings()
    found.posting.enabled = False
    found.scanning.disabled = True
    found.peering.standalone = True
    found.process.ultimate_exiting_timeout = 25  # below the pod's grace period
    found.watching.chunk_size = PAGE
    for watched in WATCHED:
        found.watching.label_selectors[watched] = names.LABEL_SERVICE
    return found


@kopf.on.login(registry=REGISTRY)
async def login(**_: object) -> kopf.ConnectionInfo:
    """The same way in as the operator's own client has."""
    found = await credentials()
    return kopf.ConnectionInfo(
        server=found.server,
        ca_path=found.ca_path,
        insecure=found.insecure,
        scheme=found.scheme,
        token=found.token,
        certificate_path=found.certificate_path,
        private_key_path=found.private_key_path,
    )


@kopf.on.startup(registry=REGISTRY)
async def startup(memo: Wiring, **indices: Any) -> None:  # noqa: ANN401 - kopf's own arguments and our indices
    """Give the ticker its eyes."""
    children = {kind: indices[index] for kind, index in CHILD_INDICES.items()}
    memo.ticker.observed.indices = Indices(services=indices["services"], pods=indices["pods"], children=children)


@kopf.on.cleanup(registry=REGISTRY)
async def cleanup(memo: Wiring, **_: object) -> None:
    """Begin no further pass."""
    memo.ticker.stop()


@kopf.on.event(*SERVICES, registry=REGISTRY)
async def service_changed(memo: Wiring, type: str | None, meta: kopf.Meta, **_: object) -> None:  # noqa: A002 - kopf's name
    """Look at a service whose spec is new."""
    uid = str(meta["uid"])
    if type is None:
        memo.ticker.verify_soon()
    if type == "DELETED":
        memo.generations.pop(uid, None)
        return
    memo.noticed(uid, ServiceKey(str(meta["namespace"]), str(meta["name"])), int(meta.get("generation") or 0))


@kopf.on.event("", "v1", "pods", registry=REGISTRY)
async def pod_listed(memo: Wiring, type: str | None, **_: object) -> None:  # noqa: A002 - kopf's name
    """A list, not a watch, has brought this pod: others may have vanished before it."""
    if type is None:
        memo.ticker.verify_soon()


@kopf.index(*SERVICES, registry=REGISTRY)
def services(body: kopf.Body, **_: object) -> dict[ServiceKey, dict[str, Any]]:
    """Services as stored, less what is only bookkeeping."""
    metadata = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    return {ServiceKey(metadata["namespace"], metadata["name"]): {**body, "metadata": metadata}}


@kopf.index("", "v1", "pods", labels={names.LABEL_SERVICE: kopf.PRESENT}, registry=REGISTRY)
def pods(body: kopf.Body, **_: object) -> dict[ServiceKey, resources.Pod]:
    """Pods by service."""
    return {resources.service_key(body["metadata"]): resources.pod(body)}


def _index(kind: ChildKind, body: kopf.Body) -> dict[ServiceKey, resources.Child]:
    found = resources.child(kind, body)
    return {found.key: found}


@kopf.index("apps", "v1", "deployments", labels={names.LABEL_SERVICE: kopf.PRESENT}, registry=REGISTRY)
def deployments(body: kopf.Body, **_: object) -> dict[ServiceKey, resources.Child]:
    """Deployments by name."""
    return _index(ChildKind.DEPLOYMENT, body)


@kopf.index("policy", "v1", "poddisruptionbudgets", labels={names.LABEL_SERVICE: kopf.PRESENT}, registry=REGISTRY)
def disruption_budgets(body: kopf.Body, **_: object) -> dict[ServiceKey, resources.Child]:
    """Budgets by name."""
    return _index(ChildKind.POD_DISRUPTION_BUDGET, body)


@kopf.index("", "v1", "services", labels={names.LABEL_SERVICE: kopf.PRESENT}, registry=REGISTRY)
def kube_services(body: kopf.Body, **_: object) -> dict[ServiceKey, resources.Child]:
    """Kubernetes' own Services by name."""
    return _index(ChildKind.SERVICE, body)


@kopf.index("", "v1", "configmaps", labels={names.LABEL_SERVICE: kopf.PRESENT}, registry=REGISTRY)
def config_maps(body: kopf.Body, **_: object) -> dict[ServiceKey, resources.Child]:
    """ConfigMaps by name."""
    return _index(ChildKind.CONFIG_MAP, body)


@kopf.index("", "v1", "serviceaccounts", labels={names.LABEL_SERVICE: kopf.PRESENT}, registry=REGISTRY)
def service_accounts(body: kopf.Body, **_: object) -> dict[ServiceKey, resources.Child]:
    """ServiceAccounts by name."""
    return _index(ChildKind.SERVICE_ACCOUNT, body)


CHILD_INDICES: Final = {
    ChildKind.DEPLOYMENT: "deployments",
    ChildKind.POD_DISRUPTION_BUDGET: "disruption_budgets",
    ChildKind.SERVICE: "kube_services",
    ChildKind.CONFIG_MAP: "config_maps",
    ChildKind.SERVICE_ACCOUNT: "service_accounts",
}

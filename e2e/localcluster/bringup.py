"""Starting the parts of a cluster in their order. Every step makes what is missing and leaves what is there, so it also mends."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import OK, HTTPConnection
from pathlib import Path

from e2e.localcluster import components, configs, nodes, pki, state
from e2e.localcluster.api import Api, wait_until
from e2e.localcluster.commands import succeeds
from e2e.localcluster.components import Component
from e2e.localcluster.console import step
from e2e.localcluster.errors import ClusterBrokenError
from e2e.localcluster.holder import HOLDER, ensure_way_home, environment, log_tail, make_namespaces, recorded_pid
from e2e.localcluster.layout import ClusterPaths
from e2e.localcluster.namespaces import call_in_network
from e2e.localcluster.nodes import Archive
from e2e.localcluster.pki import Identity
from e2e.localcluster.processes import alive, recorded, start
from e2e.localcluster.state import Shape

_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Site:
    """A cluster to be: where, from which binary, of what shape, with which images."""

    paths: ClusterPaths
    binary: Path
    shape: Shape
    archives: Sequence[Archive]


def ensure(site: Site, component: Component) -> None:
    """Start a component inside the cluster's namespaces unless it runs."""
    paths = site.paths
    process = recorded(paths.processes).get(component.name)
    if process is not None and alive(process):
        return
    words = ["nsenter", f"--target={recorded_pid(paths, HOLDER)}", "--net", "--mount", "--", *component.arguments]
    start(component.name, words, environment=environment(paths), log=paths.logs / f"{component.name}.log", folder=paths.processes)


def wait_for(site: Site, component: str, what: str, holds: Callable[[], bool]) -> None:
    """Wait for something that a component brings about; not longer than it lives.

    Raises:
        ClusterBrokenError: it died or time is up; carries the end of its log.
    """
    paths = site.paths

    def holds_or_dead() -> bool:
        if state.dead_components(paths, [component]):
            raise ClusterBrokenError(f"{component} died.\n{log_tail(paths, component)}")
        return holds()

    wait_until(what, holds_or_dead, seconds=_PATIENCE_SECONDS, hint=lambda: log_tail(paths, component))


def write_kubeconfig(paths: ClusterPaths, identity: Identity, file: Path) -> None:
    """The kubeconfig of one identity, for its owner's eyes only."""
    encoded = {"authority": pki.encoded(paths.pki / "ca.crt"), "certificate": pki.encoded(paths.pki / f"{identity.file}.crt")}
    file.touch(mode=0o600)
    file.write_text(configs.kubeconfig(**encoded, key=pki.encoded(paths.pki / f"{identity.file}.key")))


def write_files(site: Site) -> None:
    """Certificates and every configuration file."""
    paths = site.paths
    pki.make_all(paths.pki, site.shape.nodes)
    write_kubeconfig(paths, pki.ADMIN, paths.kubeconfig)
    for identity in (pki.CONTROLLER_MANAGER, pki.SCHEDULER, pki.PROXY, pki.COREDNS):
        write_kubeconfig(paths, identity, paths.data / f"{identity.file}.kubeconfig")
    (paths.data / "audit-policy.json").write_text(configs.audit_policy())
    (paths.data / "Corefile").write_text(configs.corefile(paths.data / "coredns.kubeconfig"))
    for index in range(site.shape.nodes):
        write_kubeconfig(paths, pki.node_identity(index), paths.data / f"node-{index}.kubeconfig")
        nodes.write_configs(paths, index)


def start_api(site: Site) -> Api:
    """Etcd and the API server, ready."""
    ensure(site, components.etcd(site.binary, site.paths))
    ensure(site, components.api_server(site.binary, site.paths))
    api = Api(site.paths)
    wait_for(site, "kube-apiserver", "the API server", api.ready)
    return api


def start_runtimes(site: Site) -> None:
    """The container runtimes, answering."""
    for index in range(site.shape.nodes):
        ensure(site, components.containerd(site.paths, index))
    for index in range(site.shape.nodes):
        socket = site.paths.containerd_socket(index)
        answers = partial(succeeds, ["ctr", "--address", socket, "version"])
        wait_for(site, f"containerd-{index}", f"containerd of node-{index}", answers)


def allow_coredns(api: Api) -> None:
    """What the name server may read."""
    rules = [
        {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    group, name = "rbac.authorization.k8s.io", "system:coredns"
    base = {"apiVersion": f"{group}/v1", "metadata": {"name": name}}
    api.apply(f"/apis/{group}/v1/clusterroles/{name}", {**base, "kind": "ClusterRole", "rules": rules})
    binding = {
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": name}],
    }
    api.apply(f"/apis/{group}/v1/clusterrolebindings/{name}", {**base, "kind": "ClusterRoleBinding", **binding})


def start_rest(site: Site, api: Api) -> None:
    """Everything that needs the API server."""
    binary, paths = site.binary, site.paths
    ensure(site, components.controller_manager(binary, paths))
    ensure(site, components.scheduler(binary, paths))
    allow_coredns(api)
    ensure(site, components.coredns(binary, paths))
    for index in range(site.shape.nodes):
        ensure(site, components.kubelet(binary, paths, index))
    ensure(site, components.proxy(binary, paths))


def names_answered(paths: ClusterPaths) -> bool:
    """Whether CoreDNS has read the cluster's names."""

    def ask() -> bool:
        connection = HTTPConnection("127.0.0.1", 8181, timeout=2)
        connection.request("GET", "/ready")
        return connection.getresponse().status == OK

    try:
        return call_in_network(paths.network_namespace_file, ask)
    except OSError:
        return False


def wait_ready(site: Site, api: Api) -> None:
    """Until a pod that is made now would run: nodes, GPUs, names, and the account that pods get."""
    for index in range(site.shape.nodes):
        wait_for(site, f"kubelet-{index}", f"node-{index} to register", partial(nodes.is_registered, api, index))
        nodes.give_gpus(api, index, site.shape.gpus_per_node)
    for index in range(site.shape.nodes):
        ready = partial(nodes.node_ready, api, index, site.shape.gpus_per_node)
        wait_for(site, f"kubelet-{index}", f"node-{index} to be ready", ready)
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    wait_for(site, "kube-controller-manager", "the default ServiceAccount", lambda: getattr(api.get(account), "status", 0) == OK)
    wait_for(site, "coredns", "the name server", lambda: names_answered(site.paths))


@contextmanager
def importing(site: Site) -> Iterator[list[Future[list[str]]]]:
    """Import images into all nodes beside what happens in the block; raises an import's error at its end.

    Yields one job per node, whose result is the references of the images that changed there.
    """
    with ThreadPoolExecutor(max_workers=site.shape.nodes) as pool:
        jobs = [pool.submit(nodes.import_images, site.paths, index, site.archives) for index in range(site.shape.nodes)]
        yield jobs
        for job in jobs:
            job.result()


def ensure_namespaces(site: Site) -> None:
    """The namespaces and the way out of them, unless they are there."""
    ensure_way_home(site.paths)
    process = recorded(site.paths.processes).get(HOLDER)
    if process is None or not alive(process):
        make_namespaces(site.paths)


def ensure_everything(site: Site) -> None:
    """Start what does not run; with nothing running that is the whole cluster.

    Raises:
        ClusterBrokenError: a part died or did not become ready; the message has the end of its log.
    """
    with step("namespaces, certificates, configuration"):
        ensure_namespaces(site)
        write_files(site)
    with step("container runtimes"):
        start_runtimes(site)
    with importing(site):
        with step("API server"):
            api = start_api(site)
        with step("controllers, scheduler, names, nodes"):
            start_rest(site, api)
            wait_ready(site, api)

"""The command lines of the components. Pure: paths in, words out."""

from dataclasses import dataclass
from pathlib import Path

from e2e.localcluster.layout import ClusterPaths
from e2e.localcluster.network import API_ADDRESS, API_PORT, CLUSTER_DOMAIN, SERVICE_RANGE

ETCD_URL = "http://127.0.0.1:2379"  # loopback of the namespace: pods do not reach it
_FAST_CLIENT = ("--kube-api-qps=1000", "--kube-api-burst=1000")  # the defaults delay EndpointSlices by more than a second


@dataclass(frozen=True, kw_only=True)
class Component:
    """A process of the cluster."""

    name: str
    arguments: tuple[str, ...]


def etcd(binary: Path, paths: ClusterPaths) -> Component:
    """Etcd without fsync: a test cluster need not survive a power cut, and a killed process loses nothing by it."""
    peer = "http://127.0.0.1:2380"
    flags = [f"--data-dir={paths.data}/etcd", f"--listen-client-urls={ETCD_URL}", f"--advertise-client-urls={ETCD_URL}"]
    flags += [f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}"]
    return Component(name="etcd", arguments=(str(binary), "etcd", *flags, "--unsafe-no-fsync", "--log-level=warn"))


def api_server(binary: Path, paths: ClusterPaths) -> Component:
    """The API server, with RBAC, the node authorizer, the aggregation layer and an audit log."""
    pki, issuer = paths.pki, f"https://kubernetes.default.svc.{CLUSTER_DOMAIN}"
    flags = [f"--etcd-servers={ETCD_URL}", f"--secure-port={API_PORT}", "--bind-address=0.0.0.0"]
    flags += [f"--advertise-address={API_ADDRESS}", f"--service-cluster-ip-range={SERVICE_RANGE}", "--allow-privileged"]
    flags += [
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--client-ca-file={pki}/ca.crt",
    ]
    flags += [
        f"--service-account-key-file={pki}/service-accounts.key",
        f"--service-account-signing-key-file={pki}/service-accounts.key",
    ]
    flags += [
        f"--service-account-issuer={issuer}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
    ]
    flags += [f"--kubelet-client-certificate={pki}/apiserver-kubelet-client.crt"]
    flags += [f"--kubelet-client-key={pki}/apiserver-kubelet-client.key", "--kubelet-preferred-address-types=InternalIP"]
    flags += [f"--requestheader-client-ca-file={pki}/front-proxy-ca.crt", "--requestheader-allowed-names=front-proxy-client"]
    flags += ["--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group"]
    flags += ["--requestheader-extra-headers-prefix=X-Remote-Extra-"]
    flags += [f"--proxy-client-cert-file={pki}/front-proxy-client.crt", f"--proxy-client-key-file={pki}/front-proxy-client.key"]
    flags += [f"--audit-policy-file={paths.data}/audit-policy.json", f"--audit-log-path={paths.audit_log}"]
    flags += ["--audit-log-maxsize=200", "--audit-log-maxbackup=1"]
    return Component(name="kube-apiserver", arguments=(str(binary), "kube-apiserver", *flags))


def controller_manager(binary: Path, paths: ClusterPaths) -> Component:
    """All controllers, each with its own ServiceAccount, as on a real cluster."""
    flags = [f"--kubeconfig={paths.data}/kube-controller-manager.kubeconfig", "--bind-address=127.0.0.1"]
    flags += [f"--service-account-private-key-file={paths.pki}/service-accounts.key", f"--root-ca-file={paths.pki}/ca.crt"]
    flags += [f"--cluster-signing-cert-file={paths.pki}/ca.crt", f"--cluster-signing-key-file={paths.pki}/ca.key"]
    flags += ["--use-service-account-credentials", "--leader-elect=false", *_FAST_CLIENT]
    return Component(name="kube-controller-manager", arguments=(str(binary), "kube-controller-manager", *flags))


def scheduler(binary: Path, paths: ClusterPaths) -> Component:
    """The scheduler."""
    flags = [
        f"--kubeconfig={paths.data}/kube-scheduler.kubeconfig",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
        *_FAST_CLIENT,
    ]
    return Component(name="kube-scheduler", arguments=(str(binary), "kube-scheduler", *flags))


def coredns(binary: Path, paths: ClusterPaths) -> Component:
    """The name server."""
    return Component(name="coredns", arguments=(str(binary), "coredns", "-conf", f"{paths.data}/Corefile"))


def proxy(binary: Path, paths: ClusterPaths) -> Component:
    """One kube-proxy for all nodes, which share the namespace. Connection tracking limits belong to the machine: untouched."""
    flags = [f"--kubeconfig={paths.data}/kube-proxy.kubeconfig", "--proxy-mode=nftables", "--hostname-override=node-0"]
    flags += ["--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0"]
    flags += ["--healthz-bind-address=127.0.0.1:10256", "--metrics-bind-address=127.0.0.1:10249"]
    return Component(name="kube-proxy", arguments=(str(binary), "kube-proxy", *flags))


def containerd(paths: ClusterPaths, index: int) -> Component:
    """The container runtime of one node."""
    return Component(name=f"containerd-{index}", arguments=("containerd", "--config", f"{paths.node(index)}/containerd.toml"))


def kubelet(binary: Path, paths: ClusterPaths, index: int) -> Component:
    """The kubelet of one node."""
    node = paths.node(index)
    flags = [f"--config={node}/kubelet.json", f"--kubeconfig={paths.data}/node-{index}.kubeconfig", f"--root-dir={node}/kubelet"]
    flags += [f"--cert-dir={node}/kubelet-pki", f"--hostname-override=node-{index}", f"--node-ip={API_ADDRESS}"]
    return Component(name=f"kubelet-{index}", arguments=(str(binary), "kubelet", *flags))


def expected_names(nodes: int) -> list[str]:
    """Every process of a healthy cluster; for the first two see `holder.py`."""
    control = [
        "machine",
        "namespaces",
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "coredns",
        "kube-proxy",
    ]
    return control + [f"{kind}-{index}" for index in range(nodes) for kind in ("containerd", "kubelet")]

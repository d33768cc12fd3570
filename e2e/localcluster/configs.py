"""The configuration files of the components, as text. Pure: values in, text out. JSON where a file may be YAML."""

import json
from pathlib import Path
from typing import Any

from e2e.localcluster.network import (
    API_ADDRESS,
    API_URL,
    CLUSTER_DOMAIN,
    kubelet_health_port,
    kubelet_port,
    pod_subnet,
)


def kubeconfig(*, authority: str, certificate: str, key: str) -> str:
    """A kubeconfig whose certificates, base64 of PEM, are inside, so that the one file is enough."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": {"server": API_URL, "certificate-authority-data": authority}}],
            "users": [{"name": "local", "user": {"client-certificate-data": certificate, "client-key-data": key}}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
            "current-context": "local",
        },
        indent=2,
    )


def resolver() -> str:
    """The /etc/resolv.conf of whoever runs inside, so that `SERVICE.NAMESPACE` is a name there too."""
    return f"nameserver {API_ADDRESS}\nsearch svc.{CLUSTER_DOMAIN} {CLUSTER_DOMAIN}\noptions ndots:2 timeout:2 attempts:2\n"


def corefile(kubeconfig_file: Path) -> str:
    """CoreDNS answers for the cluster only; there is nobody to forward to."""
    return f""".:53 {{
  bind {API_ADDRESS}
  errors
  ready 127.0.0.1:8181
  cache 5
  kubernetes {CLUSTER_DOMAIN} in-addr.arpa {{
    kubeconfig {kubeconfig_file}
  }}
}}
"""


def audit_policy() -> str:
    """Who asked for what, without bodies; nodes left out, since their heartbeats would bury the rest."""
    rules = [
        {"level": "None", "userGroups": ["system:nodes"]},
        {"level": "None", "nonResourceURLs": ["/readyz*", "/livez*", "/healthz*", "/version"]},
        {"level": "Metadata"},
    ]
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}
    return json.dumps(policy, indent=2)


def containerd(*, data: Path, run: Path, socket: Path, network: Path, pause_image: str) -> str:
    """The containerd of one node (version 1.6).

    `restrict_oom_score_adj`: where the score may not be lowered every sandbox would fail otherwise.
    Network namespaces of pods lie in the state folder, so that they go with the cluster and are told from others'.
    """
    return f"""version = 2
root = "{data}"
state = "{run}"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing",
]
[grpc]
  address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{data}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  sandbox_image = "{pause_image}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{network}"
"""


def pod_network(*, node: int, addresses: Path) -> str:
    """CNI: a routed link per pod, with the addresses in use kept in the node's own folder.

    Not a bridge: two pods of one bridge answer each other past the machine's connection tracking, so that a Service
    between them works only where the kernel hands bridged packets to netfilter (module `br_netfilter`).
    """
    ranges = [[{"subnet": pod_subnet(node)}]]
    addressing = {"type": "host-local", "dataDir": str(addresses), "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
    link = {"type": "ptp", "ipMasq": False, "ipam": addressing}
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "0.4.0", "name": f"warmfront-{node}", "plugins": [link, portmap]}, indent=2)


def kubelet(*, node: int, data: Path, socket: Path, authority: Path) -> str:
    """The kubelet of one node.

    The cgroup settings let it run on cgroup v1 and v2 alike and beside other users of the machine; `syncFrequency` makes
    CrashLoopBackOff and changed ConfigMaps visible soon; images are never collected, since nothing could pull them again.
    """
    settings: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "port": kubelet_port(node),
        "healthzPort": kubelet_health_port(node),
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{socket}",
        "podLogsDir": str(data / "pod-logs"),
        "volumePluginDir": str(data / "volume-plugins"),
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "serializeImagePulls": False,
        "syncFrequency": "5s",
        "kubeAPIQPS": 1000,
        "kubeAPIBurst": 1000,
        "clusterDNS": [API_ADDRESS],
        "clusterDomain": CLUSTER_DOMAIN,
    }
    return json.dumps(settings, indent=2)

"""Certificates: one authority for the cluster, one for the API aggregation layer, and an identity for each component."""

import base64
import shutil
from dataclasses import dataclass
from pathlib import Path

from e2e.localcluster.commands import run
from e2e.localcluster.network import API_ADDRESS, CLUSTER_DOMAIN, KUBERNETES_SERVICE

_DAYS = "365"  # a test cluster lives for hours


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A certificate to make: file name, user name, group, and for servers the names that it is valid for."""

    file: str
    user: str
    group: str = ""
    names: tuple[str, ...] = ()
    authority: str = "ca"

    @property
    def subject(self) -> str:
        """In the form of openssl; Kubernetes reads the organisation as the group."""
        return (f"/O={self.group}" if self.group else "") + f"/CN={self.user}"


API_SERVER = Identity(
    file="apiserver",
    user="kube-apiserver",
    names=(
        f"IP:{API_ADDRESS}",
        f"IP:{KUBERNETES_SERVICE}",
        "IP:127.0.0.1",
        "DNS:localhost",
        "DNS:kubernetes",
        "DNS:kubernetes.default",
        "DNS:kubernetes.default.svc",
        f"DNS:kubernetes.default.svc.{CLUSTER_DOMAIN}",
    ),
)
ADMIN = Identity(file="admin", user="admin", group="system:masters")
CONTROLLER_MANAGER = Identity(file="kube-controller-manager", user="system:kube-controller-manager")
SCHEDULER = Identity(file="kube-scheduler", user="system:kube-scheduler")
PROXY = Identity(file="kube-proxy", user="system:kube-proxy")
COREDNS = Identity(file="coredns", user="system:coredns")
KUBELET_CLIENT = Identity(file="apiserver-kubelet-client", user="kube-apiserver-kubelet-client", group="system:masters")
FRONT_PROXY = Identity(file="front-proxy-client", user="front-proxy-client", authority="front-proxy-ca")
FIXED = (API_SERVER, ADMIN, CONTROLLER_MANAGER, SCHEDULER, PROXY, COREDNS, KUBELET_CLIENT, FRONT_PROXY)


def node_identity(index: int) -> Identity:
    """Of a kubelet: the node authorizer lets it see only what its own pods need."""
    return Identity(file=f"node-{index}", user=f"system:node:node-{index}", group="system:nodes")


def extensions(identity: Identity) -> str:
    """The X.509 extensions of a leaf certificate."""
    usage = "serverAuth" if identity.names else "clientAuth"
    lines = ["basicConstraints=CA:FALSE", "keyUsage=digitalSignature", f"extendedKeyUsage={usage}"]
    if identity.names:
        lines.append(f"subjectAltName={','.join(identity.names)}")
    return "\n".join(lines) + "\n"


def request(folder: Path, file: str, subject: str, *options: str) -> None:
    """A new key, and with it a certificate request, or with `-x509` a certificate signed by itself."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(folder / f"{file}.key")]
    run(["openssl", "req", *key, "-subj", subject, *options])


def make_authority(folder: Path, name: str) -> None:
    """A self-signed authority."""
    usage = "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"
    request(folder, name, f"/CN=warmfront-{name}", "-x509", "-days", _DAYS, "-addext", usage, "-out", str(folder / f"{name}.crt"))


def make_identity(folder: Path, identity: Identity) -> None:
    """A key and a certificate signed by its authority."""
    base, authority = folder / identity.file, folder / identity.authority
    request(folder, identity.file, identity.subject, "-out", f"{base}.csr")
    Path(f"{base}.ext").write_text(extensions(identity))
    signer = ["-CA", f"{authority}.crt", "-CAkey", f"{authority}.key", "-days", _DAYS]
    run(["openssl", "x509", "-req", "-in", f"{base}.csr", "-extfile", f"{base}.ext", "-out", f"{base}.crt", *signer])


def make_all(folder: Path, nodes: int) -> None:
    """Make every certificate. The folder appears when all are there, so that a command killed midway leaves none."""
    if folder.exists():
        return
    draft = folder.with_name("pki.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700, parents=True)
    for authority in ("ca", "front-proxy-ca"):
        make_authority(draft, authority)
    for identity in (*FIXED, *map(node_identity, range(nodes))):
        make_identity(draft, identity)
    run(["openssl", "genrsa", "-out", draft / "service-accounts.key", "2048"])
    draft.rename(folder)


def encoded(file: Path) -> str:
    """A file as a kubeconfig carries it."""
    return base64.b64encode(file.read_bytes()).decode()

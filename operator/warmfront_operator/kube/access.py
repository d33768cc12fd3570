"""Where the API server is, and how the operator is let in."""

import os
from dataclasses import dataclass

from kubernetes.aio import config
from kubernetes.aio.client import Configuration

from warmfront_operator.errors import ConfigurationError


async def configuration() -> Configuration:
    """Where the API server is: the pod's service account, else the kubeconfig.

    Raises:
        ConfigurationError: neither is there.
    """
    # No proxy from the environment: kopf takes none either, and both must reach the same API server.
    found = Configuration(client_session_kwargs={"trust_env": False})
    try:
        if "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ:
            config.load_incluster_config(client_configuration=found)  # type: ignore[no-untyped-call]
        else:
            await config.load_kube_config(config_file=os.environ.get("KUBECONFIG"), client_configuration=found)  # type: ignore[no-untyped-call]
    except (config.ConfigException, OSError) as error:
        raise ConfigurationError(
            f"no API server is configured ({error}): run in a pod with a service account, or set KUBECONFIG"
        ) from error
    return found


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """What another client needs to reach the same API server."""

    server: str
    ca_path: str | None
    insecure: bool
    scheme: str | None
    token: str | None
    certificate_path: str | None
    private_key_path: str | None


async def credentials() -> Credentials:
    """Read anew: projected tokens are replaced about hourly.

    Raises:
        ConfigurationError: no API server is configured.
    """
    found = await configuration()
    header = await found.get_api_key_with_prefix("BearerToken") or ""
    scheme, _, token = header.rpartition(" ")
    return Credentials(
        server=found.host,
        ca_path=found.ssl_ca_cert,
        insecure=not found.verify_ssl,
        scheme=scheme or None,
        token=token or None,
        certificate_path=found.cert_file,
        private_key_path=found.key_file,
    )

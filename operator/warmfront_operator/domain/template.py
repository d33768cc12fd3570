"""The pod template of a service: engine as a native sidecar, gateway beside it. Revision 1."""

from dataclasses import dataclass
from typing import Any, Final

from warmfront_api import names
from warmfront_api.gateway_config import GATEWAY_CONFIG_DIRECTORY, GATEWAY_CONFIG_FILE, GatewayConfig
from warmfront_api.inferenceservice import InferenceService
from warmfront_api.workload import Engine
from warmfront_operator.domain.resources import ANNOTATION_TEMPLATE_HASH, digest

Json = dict[str, Any]

REVISION: Final = "1"
NON_ROOT: Final = 65532  # "nonroot" of the distroless images, and of ours
VOLUME_CONFIG: Final = "warmfront-gateway"
ROUTING_SECONDS: Final = 5  # endpoints learn of a terminating pod within this time; until then it still serves
EXIT_SECONDS: Final = 10  # to close what is left after the drain

# Exec, because the kubelet's HTTP probes cannot reach the engine's loopback. Only an *answered* 503 fails: a gateway that
# is being pulled or restarted must not kill a loaded engine, and an image without python3 passes as well (the kubelet
# ignores a probe that cannot be started).
ENGINE_LIVENESS: Final = f"""\
import sys, urllib.error, urllib.request
try:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
    direct.open("http://127.0.0.1:{names.PORT_METRICS}/engine/livez", timeout=3)
except urllib.error.HTTPError as error:
    sys.exit(error.code == 503)
except Exception:
    pass
"""


@dataclass(frozen=True, kw_only=True)
class GatewayImage:
    """Image of the gateway container."""

    image: str
    pull_policy: str


def gateway_config(service: InferenceService) -> Json:
    """Content of the gateway's file. Defaults are left out, so that a release which adds one changes no running pod."""
    config = GatewayConfig(
        service=service.name,
        namespace=service.namespace,
        model_name=service.spec.model.name,
        limits=service.spec.gateway.limits,
        warmup=service.spec.warmup,
        drain=service.spec.drain,
    )
    return config.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def selector(service: InferenceService) -> dict[str, str]:
    """Labels that select the pods of a service."""
    return {names.LABEL_SERVICE: service.name}


def pod_template(service: InferenceService, gateway: GatewayImage) -> Json:
    """Pod template with its own hash as an annotation."""
    template: Json = {
        "metadata": {"labels": _labels(service), "annotations": _annotations(service)},
        "spec": _pod_spec(service, gateway),
    }
    template["metadata"]["annotations"][ANNOTATION_TEMPLATE_HASH] = digest(template)
    return template


def _labels(service: InferenceService) -> dict[str, str]:
    ours = {
        names.LABEL_NAME: names.APP_NAME,
        names.LABEL_MANAGED_BY: names.MANAGED_BY,
        names.LABEL_COMPONENT: "server",
        **selector(service),
    }
    return {**service.spec.pod_template.metadata.labels, **ours}


def _annotations(service: InferenceService) -> dict[str, str]:
    ours = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(names.PORT_METRICS),
        names.ANNOTATION_CONFIG_HASH: digest(gateway_config(service)),
    }
    return {**service.spec.pod_template.metadata.annotations, **ours}


def _pod_spec(service: InferenceService, gateway: GatewayImage) -> Json:
    users = _present(service.spec.pod_template.spec.to_wire())
    config: Json = {"name": VOLUME_CONFIG, "configMap": {"name": service.name}}
    return {
        **users,
        "serviceAccountName": service.name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,  # a Service named `vllm` would set VLLM_PORT, which the engine reads
        "terminationGracePeriodSeconds": ROUTING_SECONDS + service.spec.drain.timeout_seconds + EXIT_SECONDS,
        "initContainers": [_engine(service)],
        "containers": [_gateway(gateway)],
        "volumes": [*users.get("volumes", ()), config],
    }


def _engine(service: InferenceService) -> Json:
    engine = service.spec.engine
    users: Json = {
        "command": engine.command,
        "env": [item.to_wire() for item in engine.env],
        "resources": _present(engine.resources.to_wire()),
        "volumeMounts": [item.to_wire() for item in engine.volume_mounts],
    }
    return {
        "name": names.CONTAINER_ENGINE,
        "image": engine.image,
        "restartPolicy": "Always",
        "args": [*_owned_flags(service), *engine.args],
        "livenessProbe": _engine_liveness(),
        **_present(users),
    }


def _owned_flags(service: InferenceService) -> list[str]:
    model, engine = service.spec.model, service.spec.engine
    flags = {
        "host": "127.0.0.1",
        "port": names.PORT_ENGINE,
        "model": model_argument(model.source),
        "served-model-name": model.name,
        "revision": model.revision,
        **_batch_flags(engine),
    }
    return [f"--{flag}={value}" for flag, value in flags.items() if value is not None]


def _batch_flags(engine: Engine) -> Json:
    return {"max-model-len": engine.max_model_len, "max-num-seqs": engine.max_num_seqs}


def model_argument(source: str) -> str:
    """The `--model` of vLLM for a source: `hf://ORG/NAME` -> `ORG/NAME`, `path:///DIR` -> `/DIR`."""
    return source.removeprefix("hf://").removeprefix("path://")


def _engine_liveness() -> Json:
    return {
        "exec": {"command": ["python3", "-c", ENGINE_LIVENESS]},
        "periodSeconds": 20,
        "timeoutSeconds": 15,  # a busy node starts Python slowly, and a timeout counts as a failure
        "failureThreshold": 3,
        "terminationGracePeriodSeconds": 10,  # a hung engine would sit out the whole drain time
    }


def _gateway(gateway: GatewayImage) -> Json:
    return {
        "name": names.CONTAINER_GATEWAY,
        "image": gateway.image,
        "imagePullPolicy": gateway.pull_policy,
        "env": [{"name": "WARMFRONT_GATEWAY_CONFIG", "value": f"{GATEWAY_CONFIG_DIRECTORY}/{GATEWAY_CONFIG_FILE}"}],
        "ports": [_port("http", names.PORT_HTTP), _port("metrics", names.PORT_METRICS)],
        # Two failures of two seconds: a pod that drains leaves the endpoints before its clients notice.
        "readinessProbe": {"httpGet": _get("/readyz"), "periodSeconds": 2, "timeoutSeconds": 2, "failureThreshold": 2},
        "livenessProbe": {"httpGet": _get("/livez"), "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": _restricted(),
        "volumeMounts": [{"name": VOLUME_CONFIG, "mountPath": GATEWAY_CONFIG_DIRECTORY, "readOnly": True}],
    }


def _port(name: str, number: int) -> Json:
    return {"name": name, "containerPort": number, "protocol": "TCP"}


def _get(path: str) -> Json:
    return {"path": path, "port": names.PORT_METRICS}


def _restricted() -> Json:
    return {
        "runAsNonRoot": True,
        "runAsUser": NON_ROOT,
        "runAsGroup": NON_ROOT,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _present(values: Json) -> Json:
    """Without what is empty: an applied empty list would own the field for nothing."""
    return {key: value for key, value in values.items() if value not in (None, [], {}, "")}

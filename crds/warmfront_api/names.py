"""Names that cross a component's border: API group, labels, annotations, ports, field managers."""

from typing import Final

GROUP: Final = "warmfront.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

KIND: Final = "InferenceService"
PLURAL: Final = "inferenceservices"

# Selectors use our own label: Helm and Argo CD both claim app.kubernetes.io/instance.
LABEL_SERVICE: Final = f"{GROUP}/service"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
LABEL_NAME: Final = "app.kubernetes.io/name"
LABEL_COMPONENT: Final = "app.kubernetes.io/component"
MANAGED_BY: Final = "warmfront"
APP_NAME: Final = "inferenceservice"

# What we rendered and which renderer did it; see "Children" in the design notes.
ANNOTATION_APPLIED_HASH: Final = f"{GROUP}/applied-hash"
ANNOTATION_APPLIED_FIELDS: Final = f"{GROUP}/applied-fields"
ANNOTATION_TEMPLATE_REVISION: Final = f"{GROUP}/template-revision"
ANNOTATION_CONFIG_HASH: Final = f"{GROUP}/config-hash"

# Two field managers, so that a human reading managedFields sees who scaled and who shaped.
FIELD_MANAGER: Final = "warmfront-operator"
FIELD_MANAGER_SCALE: Final = "warmfront-scaler"
FIELD_MANAGER_STATUS: Final = "warmfront-status"

CONTAINER_ENGINE: Final = "engine"
CONTAINER_GATEWAY: Final = "gateway"

PORT_HTTP: Final = 8080  # the gateway's OpenAI port, the only one that clients reach
PORT_METRICS: Final = 9090  # the gateway's Prometheus port, with the engine's metrics relayed
PORT_ENGINE: Final = 8000  # the engine, on 127.0.0.1 only

RESOURCE_GPU: Final = "nvidia.com/gpu"

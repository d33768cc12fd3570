"""The CustomResourceDefinition of InferenceService, and its twin for the Helm chart. Pure."""

from typing import Any, Final

import yaml

from warmfront_api.base import rules
from warmfront_api.errors import UnsupportedSchemaError
from warmfront_api.inferenceservice import InferenceServiceSpec
from warmfront_api.names import GROUP, KIND, PLURAL, VERSION
from warmfront_api.schema import Schema, structural
from warmfront_api.status import ConditionType, InferenceServiceStatus

CRD_NAME: Final = f"{PLURAL}.{GROUP}"
SHORT_NAME: Final = "wfsvc"
CATEGORY: Final = "warmfront"

_NOTICE: Final = "# Generated from crds/warmfront_api by `make generate`: edit the models, not this file.\n"

_COLUMNS: Final = (
    (
        "Ready",
        "string",
        '.status.conditions[?(@.type=="Ready")].status',
        "Whether at least one pod is warm and the rollout is through.",
    ),
    ("Desired", "integer", ".status.desiredReplicas", "Replicas that the operator wants."),
    ("Ready replicas", "integer", ".status.readyReplicas", "Pods that are warm and serving."),
    ("Binding", "string", ".status.lastDecision.binding", "Which input decided the replicas."),
    ("Forecast", "string", ".status.forecast.state", "How far the forecast is trusted."),
    # A string: kubectl prints a date as its age, and a peak lies ahead.
    ("Next peak", "string", ".status.forecast.nextPeak.start", "Start of the next window that needs more replicas than now."),
    ("Age", "date", ".metadata.creationTimestamp", "Time since creation."),
)

# Without it a resource that no operator has seen counts as current for kstatus (Flux, Argo CD): nothing says otherwise.
_STATUS_BEFORE_THE_OPERATOR: Final = {
    "observedGeneration": -1,
    "conditions": [
        {
            "type": ConditionType.READY.value,
            "status": "Unknown",
            "reason": "Pending",
            "message": "Waiting for the Warmfront operator.",
            "observedGeneration": 0,
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }
    ],
}

# The children share the resource's name; a Service's must be a DNS label that starts with a letter.
_NAME_RULES: Final = rules(
    (
        "self.metadata.name.size() <= 63",
        "metadata.name must have at most 63 characters, since the Service shares it: choose a shorter name",
    ),
    (
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        (
            "metadata.name must start with a letter and have only lower-case letters, digits and '-', "
            "since the Service shares it: rename the resource, for example chat-v2"
        ),
    ),
)


def custom_resource_definition() -> Schema:
    """The whole CustomResourceDefinition, as the API server takes it."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": CRD_NAME},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": [SHORT_NAME],
                "categories": [CATEGORY],
            },
            "versions": [_version()],
        },
    }


def _version() -> Schema:
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": printer_columns(),
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "schema": {"openAPIV3Schema": root_schema()},
    }


def printer_columns() -> list[Schema]:
    """What `kubectl get` shows, in order."""
    return [
        {"name": name, "type": kind, "jsonPath": path, "description": description} for name, kind, path, description in _COLUMNS
    ]


def root_schema() -> Schema:
    """Schema of a whole resource: spec, status and the rules on its name."""
    status = structural(InferenceServiceStatus)
    return {
        "description": "A model served by vLLM pods that are warm before their load arrives.",
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"description": f"{GROUP}/{VERSION}.", "type": "string", "maxLength": 317},
            "kind": {"description": f"{KIND}.", "type": "string", "maxLength": 63},
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 253}}},
            "spec": structural(InferenceServiceSpec),
            "status": {**status, "default": _STATUS_BEFORE_THE_OPERATOR},
        },
        **_NAME_RULES,
    }


def crd_yaml() -> str:
    """The CustomResourceDefinition as a file for `kubectl apply`."""
    return _NOTICE + _dump(custom_resource_definition())


def chart_yaml() -> str:
    """The CustomResourceDefinition as a Helm template that stays in the cluster when its release goes.

    Raises:
        UnsupportedSchemaError: some text would be taken for a template action.
    """
    definition = custom_resource_definition()
    definition["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    text = _NOTICE + _dump(definition)
    if "{{" in text:
        raise UnsupportedSchemaError("a description or rule contains '{{', which Helm would evaluate; rephrase it")
    return text


class _Dumper(yaml.SafeDumper):
    """Indents lists under their key, and repeats shared parts instead of pointing at them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - PyYAML's
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401, ARG002 - PyYAML's
        return True


def _dump(document: Schema) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=130, allow_unicode=True)

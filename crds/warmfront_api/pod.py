"""What the user adds to each pod: labels, placement, volumes, classes."""

from typing import Annotated, Any, Literal

from pydantic import Field

from warmfront_api.base import ApiModel, keyed_list, rules
from warmfront_api.text import DNS_LABEL, LabelValue, LongText, ObjectName, key_rule

# Volumes that the operator adds carry this prefix.
OWNED_VOLUME_PREFIX = "warmfront-"


def _refused_rules(**fields: str) -> list[tuple[str, str]]:
    """Pod fields that are in the schema only so that they are refused with a reason, whatever client sends them."""
    return [(f"!has(self.{field})", f"podTemplate.spec.{field} is not allowed, {reason}") for field, reason in fields.items()]


class PodMetadata(ApiModel):
    """Labels and annotations added to each pod."""

    labels: Annotated[
        dict[str, LabelValue],
        Field(
            description="Added labels.",
            max_length=32,
            json_schema_extra=rules(
                (
                    "self.all(key, !key.startsWith('warmfront.dev/') && !key.startsWith('app.kubernetes.io/'))",
                    "podTemplate.metadata.labels must not start with warmfront.dev/ or app.kubernetes.io/: rename the label",
                ),
                key_rule("podTemplate.metadata.labels", "label key"),
            ),
        ),
    ] = {}
    annotations: Annotated[
        dict[str, LongText],
        Field(
            description="Added annotations.",
            max_length=32,
            json_schema_extra=rules(
                (
                    "self.all(key, !key.startsWith('warmfront.dev/') && !key.startsWith('prometheus.io/'))",
                    (
                        "podTemplate.metadata.annotations must not use the prefixes warmfront.dev/ and prometheus.io/, "
                        "which Warmfront writes itself: rename the annotation"
                    ),
                ),
                key_rule("podTemplate.metadata.annotations", "annotation key"),
            ),
        ),
    ] = {}


class Toleration(ApiModel):
    """A taint that the pods tolerate, as in a Pod."""

    key: Annotated[str | None, Field(description="Taint key; unset with `Exists`: every taint.", max_length=317)] = None
    operator: Annotated[Literal["Exists", "Equal"] | None, Field(description="How key and value are compared.")] = None
    value: Annotated[str | None, Field(description="Taint value.", max_length=63)] = None
    effect: Annotated[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None, Field(description="Which effect.")] = None
    toleration_seconds: Annotated[int | None, Field(description="How long NoExecute is tolerated.", ge=0, le=31_536_000)] = None


class LocalObject(ApiModel):
    """A named object of the service's namespace."""

    name: Annotated[ObjectName, Field(description="Name of the object.")]


class PodSpec(ApiModel):
    """The parts of a pod's spec that are the user's."""

    model_config = {
        "json_schema_extra": rules(
            *_refused_rules(
                hostNetwork="since the engine's loopback would be the node's: remove it",
                shareProcessNamespace="since the gateway's secrets would be open to the engine: remove it",
                serviceAccountName="since every service has its own: bind your Role to the ServiceAccount of the service's name",
                terminationGracePeriodSeconds="since it follows from the drain: set drain.timeoutSeconds instead",
            )
        )
    }

    node_selector: Annotated[
        dict[str, LabelValue],
        Field(
            description="Labels that a node must have.",
            max_length=32,
            json_schema_extra=rules(key_rule("podTemplate.spec.nodeSelector", "label key")),
        ),
    ] = {}
    tolerations: Annotated[list[Toleration], Field(description="Taints that are tolerated.", max_length=32)] = []
    affinity: Annotated[
        dict[str, Any] | None,
        Field(description="Affinity, as in a Pod.", json_schema_extra={"x-kubernetes-preserve-unknown-fields": True}),
    ] = None
    volumes: Annotated[
        list[
            Annotated[
                dict[str, Any],
                Field(
                    json_schema_extra={
                        "x-kubernetes-preserve-unknown-fields": True,
                        "description": "A volume, as in a Pod.",
                        "properties": {
                            "name": {
                                "description": "Name of the volume.",
                                "type": "string",
                                "minLength": 1,
                                "maxLength": 63,
                                "pattern": DNS_LABEL,
                            }
                        },
                        "required": ["name"],
                    }
                ),
            ]
        ],
        Field(
            description="Volumes that `engine.volumeMounts` may name, as in a Pod.",
            max_length=32,
            json_schema_extra=keyed_list("name")
            | rules(
                (
                    f"self.all(volume, !volume.name.startsWith('{OWNED_VOLUME_PREFIX}'))",
                    f"podTemplate.spec.volumes must not use names that start with {OWNED_VOLUME_PREFIX}: rename the volume",
                )
            ),
        ),
    ] = []
    runtime_class_name: Annotated[ObjectName | None, Field(description="RuntimeClass.")] = None
    priority_class_name: Annotated[ObjectName | None, Field(description="PriorityClass.")] = None
    scheduler_name: Annotated[ObjectName | None, Field(description="Scheduler.")] = None
    image_pull_secrets: Annotated[
        list[LocalObject],
        Field(description="Secrets for the registry.", max_length=16, json_schema_extra=keyed_list("name")),
    ] = []
    host_network: Annotated[bool | None, Field(description="Refused.")] = None
    share_process_namespace: Annotated[bool | None, Field(description="Refused.")] = None
    service_account_name: Annotated[str | None, Field(description="Refused.", max_length=253)] = None
    termination_grace_period_seconds: Annotated[int | None, Field(description="Refused.", ge=0, le=604_800)] = None


class PodTemplate(ApiModel):
    """What the user adds to each pod."""

    metadata: Annotated[PodMetadata, Field(description="Labels and annotations.")] = PodMetadata()
    spec: Annotated[PodSpec, Field(description="Placement, volumes, classes.")] = PodSpec()

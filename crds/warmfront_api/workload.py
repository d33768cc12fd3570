"""What runs: the model, its engine, the gateway beside it, the pod around both."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from warmfront_api.base import ApiModel, keyed_list, rules

# Flags that the operator writes itself; a user's own copy would silently lose or win against it.
OWNED_ENGINE_FLAGS = (
    "host",
    "port",
    "model",
    "served-model-name",
    "revision",
    "max-model-len",
    "max-num-seqs",
    "api-key",
    "uds",
    "root-path",
    "ssl-keyfile",
    "ssl-certfile",
)

ShortText = Annotated[str, StringConstraints(max_length=1024)]
LongText = Annotated[str, StringConstraints(max_length=4096)]
Name63 = Annotated[str, StringConstraints(min_length=1, max_length=63)]
Quantity = Annotated[str, StringConstraints(max_length=64)]


def _owned_flag_rule() -> tuple[str, str]:
    flags = "|".join(OWNED_ENGINE_FLAGS)
    listed = ", ".join(f"--{flag}" for flag in OWNED_ENGINE_FLAGS)
    return (
        f"self.all(arg, !arg.matches('^--({flags})(=.*)?$'))",
        f"engine.args must not set flags that Warmfront owns ({listed}): "
        "remove them and use the field of the same meaning (model, engine.maxModelLen, engine.maxNumSeqs)",
    )


class Model(ApiModel):
    """Which model is served, and where its weights come from."""

    name: Annotated[
        str,
        Field(
            description="The model name that clients send in the `model` field of a request. Immutable.",
            min_length=1,
            max_length=128,
            pattern=r"^[A-Za-z0-9]([A-Za-z0-9._/:-]*[A-Za-z0-9])?$",
            json_schema_extra=rules(
                ("self == oldSelf", "model.name is immutable: create a second InferenceService for another model")
            ),
        ),
    ]
    source: Annotated[
        str,
        Field(
            description="Where the weights are: `hf://ORG/NAME` (a hub) or `path:///DIR` (a folder inside the engine container).",
            min_length=1,
            max_length=512,
            json_schema_extra=rules(
                (
                    "self.matches('^(hf://[A-Za-z0-9._-]+/[A-Za-z0-9._-]+|path:///[^ ]+)$')",
                    "model.source must be hf://ORG/NAME or path:///DIR, for example hf://meta-llama/Llama-3.1-8B-Instruct",
                )
            ),
        ),
    ]
    revision: Annotated[
        str | None,
        Field(description="Branch, tag or commit of a hub model; unset: the hub's default.", max_length=128),
    ] = None


class SecretKey(ApiModel):
    """One key of a Secret in the service's namespace."""

    name: Annotated[str, Field(description="Name of the Secret.", min_length=1, max_length=253)]
    key: Annotated[str, Field(description="Key inside it.", min_length=1, max_length=253)]
    optional: Annotated[bool | None, Field(description="Start without the variable when it is absent.")] = None


class EnvSource(ApiModel):
    """Where a variable's value comes from."""

    secret_key_ref: Annotated[
        SecretKey, Field(description="A key of a Secret; mounted by the kubelet, never read by the operator.")
    ]


class EnvVar(ApiModel):
    """One environment variable of the engine container."""

    name: Annotated[str, Field(description="Name of the variable.", min_length=1, max_length=253)]
    value: Annotated[str | None, Field(description="Literal value.", max_length=32768)] = None
    value_from: Annotated[EnvSource | None, Field(description="Taken from a Secret instead of `value`.")] = None


class VolumeMount(ApiModel):
    """Mounts a volume of `podTemplate.spec.volumes` in the engine container."""

    name: Annotated[str, Field(description="Name of the volume.", min_length=1, max_length=63)]
    mount_path: Annotated[str, Field(description="Where it appears in the container.", min_length=1, max_length=4096)]
    sub_path: Annotated[str | None, Field(description="Folder of the volume to mount instead of its root.", max_length=4096)] = (
        None
    )
    read_only: Annotated[bool | None, Field(description="Mount without write access.")] = None


class Resources(ApiModel):
    """Compute resources of the engine container, as in a Pod."""

    limits: Annotated[dict[str, Quantity | int], Field(description="Most it may use; GPUs are named here.", max_length=16)] = {}
    requests: Annotated[dict[str, Quantity | int], Field(description="What the scheduler sets aside.", max_length=16)] = {}


class Engine(ApiModel):
    """The vLLM container."""

    image: Annotated[str, Field(description="Image of the engine.", min_length=1, max_length=512)]
    command: Annotated[
        list[ShortText],
        Field(
            description="Entry point that takes vLLM's server flags; empty: the image's own.",
            max_length=16,
        ),
    ] = []
    args: Annotated[
        list[LongText],
        Field(
            description="More vLLM flags, for example `--gpu-memory-utilization=0.92`. Flags that Warmfront owns are refused by name.",
            max_length=64,
            json_schema_extra=rules(_owned_flag_rule()),
        ),
    ] = []
    env: Annotated[
        list[EnvVar],
        Field(
            description="Environment of the engine container.",
            max_length=64,
            json_schema_extra=keyed_list("name"),
        ),
    ] = []
    resources: Annotated[Resources, Field(description="Compute resources.")] = Resources()
    volume_mounts: Annotated[
        list[VolumeMount], Field(description="Mounts of volumes from `podTemplate.spec.volumes`.", max_length=32)
    ] = []
    max_model_len: Annotated[
        int | None,
        Field(description="Longest prompt plus output, tokens; unset: the model's own.", ge=16, le=10_000_000),
    ] = None
    max_num_seqs: Annotated[int, Field(description="Most sequences in one batch.", ge=1, le=65_536)] = 256


class GatewayLimits(ApiModel):
    """What one pod's gateway lets in."""

    max_request_bytes: Annotated[
        int, Field(description="Longest request body; a longer one is answered 413.", ge=1024, le=1_073_741_824)
    ] = 1_048_576
    max_concurrent_requests: Annotated[
        int,
        Field(
            description="Most requests in flight in one pod; one more is answered 503 with Retry-After.",
            ge=1,
            le=65_536,
        ),
    ] = 512
    request_timeout_seconds: Annotated[
        int,
        Field(
            description="Longest time for one request; then it is answered 504 (or its stream ends with an error event).",
            ge=1,
            le=86_400,
        ),
    ] = 600


class Gateway(ApiModel):
    """The OpenAI-compatible gateway in each pod."""

    limits: Annotated[GatewayLimits, Field(description="Bounds per pod.")] = GatewayLimits()


class Warmup(ApiModel):
    """When a pod counts as warm."""

    prompts: Annotated[int, Field(description="Generations that must complete before the pod is Ready.", ge=1, le=64)] = 3
    timeout_seconds: Annotated[
        int,
        Field(
            description="After so long a healthy engine serves without being warm (and its metric says so); an unhealthy one never serves.",
            ge=5,
            le=86_400,
        ),
    ] = 600


class Drain(ApiModel):
    """How a pod stops."""

    timeout_seconds: Annotated[int, Field(description="How long running requests may go on after SIGTERM.", ge=1, le=86_400)] = (
        120
    )


class PodMetadata(ApiModel):
    """Labels and annotations added to each pod."""

    labels: Annotated[
        dict[str, Annotated[str, StringConstraints(max_length=63)]],
        Field(
            description="Added labels.",
            max_length=32,
            json_schema_extra=rules(
                (
                    "self.all(key, !key.startsWith('warmfront.dev/') && !key.startsWith('app.kubernetes.io/'))",
                    "podTemplate.metadata.labels must not use the prefixes warmfront.dev/ and app.kubernetes.io/: rename the label",
                )
            ),
        ),
    ] = {}
    annotations: Annotated[dict[str, LongText], Field(description="Added annotations.", max_length=32)] = {}


class Toleration(ApiModel):
    """A taint that the pods tolerate, as in a Pod."""

    key: Annotated[str | None, Field(description="Taint key; unset with `Exists`: every taint.", max_length=317)] = None
    operator: Annotated[Literal["Exists", "Equal"] | None, Field(description="How key and value are compared.")] = None
    value: Annotated[str | None, Field(description="Taint value.", max_length=63)] = None
    effect: Annotated[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None, Field(description="Which effect.")] = None
    toleration_seconds: Annotated[int | None, Field(description="How long NoExecute is tolerated.", ge=0, le=31_536_000)] = None


class LocalObject(ApiModel):
    """A named object of the service's namespace."""

    name: Annotated[str, Field(description="Name of the object.", min_length=1, max_length=253)]


class PodSpec(ApiModel):
    """The parts of a pod's spec that are the user's."""

    node_selector: Annotated[
        dict[str, Annotated[str, StringConstraints(max_length=63)]],
        Field(description="Labels that a node must have.", max_length=32),
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
                    }
                ),
            ]
        ],
        Field(description="Volumes that `engine.volumeMounts` may name, as in a Pod.", max_length=32),
    ] = []
    runtime_class_name: Annotated[str | None, Field(description="RuntimeClass.", max_length=253)] = None
    priority_class_name: Annotated[str | None, Field(description="PriorityClass.", max_length=253)] = None
    scheduler_name: Annotated[str | None, Field(description="Scheduler.", max_length=253)] = None
    image_pull_secrets: Annotated[list[LocalObject], Field(description="Secrets for the registry.", max_length=16)] = []


class PodTemplate(ApiModel):
    """What the user adds to each pod."""

    metadata: Annotated[PodMetadata, Field(description="Labels and annotations.")] = PodMetadata()
    spec: Annotated[PodSpec, Field(description="Placement, volumes, classes.")] = PodSpec()

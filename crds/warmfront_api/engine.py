"""The vLLM container of a pod."""

from typing import Annotated

from pydantic import Field
from pydantic.config import JsonDict

from warmfront_api.base import ApiModel, keyed_list, rules
from warmfront_api.text import QUANTITY, Amount, LongText, ObjectName, Quantity, ShortText, VolumeName, key_rule

# Flags that the operator writes itself (a user's own copy would silently lose or win against it), and those that would
# cut the gateway off from its engine: its address, its key, its metrics, or a file that sets any of them.
OWNED_ENGINE_FLAGS = (
    "host",
    "port",
    "uds",
    "model",
    "served-model-name",
    "revision",
    "max-model-len",
    "max-num-seqs",
    "api-key",
    "root-path",
    "ssl-keyfile",
    "ssl-certfile",
    "ssl-ca-certs",
    "disable-log-stats",
    "config",
)

# Variables of the engine that mean the same as an owned flag.
OWNED_ENGINE_VARIABLES = ("VLLM_API_KEY",)


def _owned_flag_rule() -> tuple[str, str]:
    """Refuses owned flags however an argument parser would still take them: with `_` for `-`, shortened, with `=value`."""
    flags = ", ".join(f"'--{flag}'" for flag in OWNED_ENGINE_FLAGS)
    listed = ", ".join(f"--{flag}" for flag in OWNED_ENGINE_FLAGS)
    return (
        f"self.all(arg, !arg.startsWith('--') || ![{flags}].exists(flag, flag.startsWith(arg.split('=')[0].replace('_', '-'))))",
        (
            f"engine.args must not set flags that Warmfront owns ({listed}), shortened or not: "
            "remove them and use the field of the same meaning (model, engine.maxModelLen, engine.maxNumSeqs)"
        ),
    )


def _owned_variable_rule() -> tuple[str, str]:
    names = ", ".join(f"'{name}'" for name in OWNED_ENGINE_VARIABLES)
    return (
        f"self.all(variable, !(variable.name in [{names}]))",
        f"engine.env must not set {', '.join(OWNED_ENGINE_VARIABLES)}: remove it, the gateway calls its engine without a key",
    )


def _request_rule() -> tuple[str, str]:
    return (
        (
            "!has(self.requests) || !has(self.limits) || self.requests.all(key, !(key in self.limits) || "
            "quantity(string(self.requests[key])).compareTo(quantity(string(self.limits[key]))) <= 0)"
        ),
        "engine.resources.requests must not be above engine.resources.limits: lower the request or raise the limit",
    )


def _amount_rule(field: str) -> tuple[str, str]:
    """Says in words what the pattern of an amount refuses; the API server shows both."""
    return (
        f"self.all(key, string(self[key]).matches(r'{QUANTITY}'))",
        f"{field} has an amount that is no quantity of zero or more: write for example 1, 500m or 24Gi",
    )


def _amounts(field: str) -> JsonDict:
    return rules(key_rule(field, "resource name"), _amount_rule(field))


class SecretKey(ApiModel):
    """One key of a Secret in the service's namespace."""

    name: Annotated[ObjectName, Field(description="Name of the Secret.")]
    key: Annotated[str, Field(description="Key inside it.", min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")]
    optional: Annotated[bool | None, Field(description="Start without the variable when it is absent.")] = None


class EnvSource(ApiModel):
    """Where a variable's value comes from."""

    secret_key_ref: Annotated[
        SecretKey, Field(description="A key of a Secret; mounted by the kubelet, never read by the operator.")
    ]


class EnvVar(ApiModel):
    """One environment variable of the engine container."""

    model_config = {
        "json_schema_extra": rules(
            (
                "!(has(self.value) && has(self.valueFrom))",
                "an entry of engine.env must not have both value and valueFrom: remove one",
            )
        )
    }

    name: Annotated[
        str, Field(description="Name of the variable.", min_length=1, max_length=253, pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$")
    ]
    value: Annotated[str | None, Field(description="Literal value.", max_length=32768)] = None
    value_from: Annotated[EnvSource | None, Field(description="Taken from a Secret instead of `value`.")] = None


class VolumeMount(ApiModel):
    """Mounts a volume of `podTemplate.spec.volumes` in the engine container."""

    name: Annotated[VolumeName, Field(description="Name of the volume.")]
    mount_path: Annotated[
        str, Field(description="Where it appears in the container.", min_length=1, max_length=1024, pattern=r"^/[^:]*$")
    ]
    sub_path: Annotated[str | None, Field(description="Folder of the volume to mount instead of its root.", max_length=1024)] = (
        None
    )
    read_only: Annotated[bool | None, Field(description="Mount without write access.")] = None


class Resources(ApiModel):
    """Compute resources of the engine container, as in a Pod."""

    model_config = {"json_schema_extra": rules(_request_rule())}

    limits: Annotated[
        dict[str, Quantity | Amount],
        Field(
            description="Most it may use; GPUs are named here.",
            max_length=16,
            json_schema_extra=rules(
                key_rule("engine.resources.limits", "resource name"), _amount_rule("engine.resources.limits")
            ),
        ),
    ] = {}
    requests: Annotated[
        dict[str, Quantity | Amount],
        Field(
            description="What the scheduler sets aside.",
            max_length=16,
            json_schema_extra=rules(
                key_rule("engine.resources.requests", "resource name"), _amount_rule("engine.resources.requests")
            ),
        ),
    ] = {}


class Engine(ApiModel):
    """The vLLM container."""

    image: Annotated[str, Field(description="Image of the engine.", min_length=1, max_length=512, pattern=r"^[^\s]+$")]
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
            description="More vLLM flags, for example `--gpu-memory-utilization=0.92`; those that Warmfront owns are refused.",
            max_length=64,
            json_schema_extra=rules(_owned_flag_rule()),
        ),
    ] = []
    env: Annotated[
        list[EnvVar],
        Field(
            description="Environment of the engine container.",
            max_length=64,
            json_schema_extra=keyed_list("name") | rules(_owned_variable_rule()),
        ),
    ] = []
    resources: Annotated[Resources, Field(description="Compute resources.")] = Resources()
    volume_mounts: Annotated[
        list[VolumeMount],
        Field(
            description="Mounts of volumes from `podTemplate.spec.volumes`.",
            max_length=32,
            json_schema_extra=keyed_list("mountPath"),
        ),
    ] = []
    max_model_len: Annotated[
        int | None,
        Field(description="Longest prompt plus output, tokens; unset: the model's own.", ge=16, le=10_000_000),
    ] = None
    max_num_seqs: Annotated[int, Field(description="Most sequences in one batch.", ge=1, le=65_536)] = 256

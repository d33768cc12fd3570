"""Every value of the chart does what it says, and no other value is taken."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.charts.helm import CHARTS, Helm, Rendered, Values

Look = Callable[[Rendered], Any]

DIGEST = "sha256:" + "0123456789abcdef" * 4
PEER = {"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]}}}
RESOURCES = {"requests": {"cpu": 2}, "limits": {"memory": "3Gi"}}


def nested(path: str, value: object) -> Values:
    """`a.b` and 1 as {"a": {"b": 1}}."""
    for name in reversed(path.split(".")):
        value = {name: value}
    return value  # type: ignore[return-value] # a path has at least one name


def merged(*parts: Values) -> Values:
    """One tree of several."""
    result: Values = {}
    for part in parts:
        for name, value in part.items():
            both = isinstance(value, dict) and isinstance(result.get(name), dict)
            result[name] = merged(result[name], value) if both else value
    return result


def pod(component: str, field: str) -> Look:
    return lambda out: out.pod(component)["spec"].get(field)


def env(component: str, name: str) -> Look:
    return lambda out: out.env(component).get(f"WARMFRONT_{component.upper()}_{name}")


def projected(out: Rendered) -> list[Any]:
    """The sources of the mounted credentials, the same in both components."""
    volumes = [[v for v in out.pod(name)["spec"]["volumes"] if v["name"] == "prometheus"] for name in ("operator", "forecaster")]
    assert volumes[0] == volumes[1]
    return [source for volume in volumes[0] for source in volume["projected"]["sources"]]


def credentials(kind: str, name: str, key: str, path: str) -> list[Any]:
    return [{kind: {"name": name, "items": [{"key": key, "path": path}]}}]


def component_cases(name: str) -> dict[str, tuple[Values, Look, Any]]:
    """The values that operator and forecaster have in common."""
    values: dict[str, tuple[Any, Look, Any]] = {
        "image.repository": ("mirror/x", lambda out: out.container(name)["image"], "mirror/x:0.1.0"),
        "image.tag": ("v9", lambda out: out.container(name)["image"], f"warmfront/{name}:v9"),
        "image.digest": (DIGEST, lambda out: out.container(name)["image"], f"warmfront/{name}@{DIGEST}"),
        "image.pullPolicy": ("Always", lambda out: out.container(name)["imagePullPolicy"], "Always"),
        "resources.requests": ({"cpu": 2}, lambda out: out.container(name)["resources"]["requests"]["cpu"], 2),
        "resources.limits": ({"memory": "3Gi"}, lambda out: out.container(name)["resources"]["limits"], {"memory": "3Gi"}),
        "nodeSelector": ({"pool": "cpu"}, pod(name, "nodeSelector"), {"pool": "cpu"}),
        "tolerations": ([TOLERATION], pod(name, "tolerations"), [TOLERATION]),
        "affinity": (AFFINITY, pod(name, "affinity"), AFFINITY),
        "priorityClassName": ("high", pod(name, "priorityClassName"), "high"),
        "podLabels": ({"team": "a"}, lambda out: out.pod(name)["metadata"]["labels"]["team"], "a"),
        "podAnnotations": ({"note": "b"}, lambda out: out.pod(name)["metadata"]["annotations"]["note"], "b"),
        "serviceAccountAnnotations": (
            {"role": "c"},
            lambda out: out.named("ServiceAccount", name)["metadata"]["annotations"],
            {"role": "c"},
        ),
    }
    return {f"{name}.{path}": (nested(f"{name}.{path}", value), look, want) for path, (value, look, want) in values.items()}


ON, OFF = True, False


def simple(path: str, value: object, look: Look, want: object) -> dict[str, tuple[Values, Look, Any]]:
    return {path: (nested(path, value), look, want)}


def all_metadata(field: str, key: str) -> Look:
    return lambda out: {item["metadata"].get(field, {}).get(key) for item in out.objects}


# Path of a value: what is set (with what it needs), where to look, what must be there.
CASES: dict[str, tuple[Values, Look, Any]] = {
    **component_cases("operator"),
    **component_cases("forecaster"),
    **simple("nameOverride", "front", lambda out: out.named("Deployment", "operator")["metadata"]["name"], "wf-front-operator"),
    **simple("fullnameOverride", "f", lambda out: out.named("Deployment", "operator")["metadata"]["name"], "f-operator"),
    **simple("commonLabels", {"team": "a"}, all_metadata("labels", "team"), {"a"}),
    **simple("commonAnnotations", {"note": "b"}, all_metadata("annotations", "note"), {"b"}),
    **simple(
        "imagePullSecrets",
        [{"name": "registry"}],
        lambda out: [out.pod(name)["spec"]["imagePullSecrets"] for name in ("operator", "forecaster")],
        [[{"name": "registry"}]] * 2,
    ),
    **simple(
        "prometheus.url",
        "https://p:9090",
        lambda out: (env("operator", "PROMETHEUS_URL")(out), env("forecaster", "PROMETHEUS_URL")(out)),
        ("https://p:9090",) * 2,
    ),
    **simple("prometheus.tokenSecret.name", "tok", projected, credentials("secret", "tok", "token", "token")),
    "prometheus.tokenSecret.key": (
        nested("prometheus.tokenSecret", {"name": "tok", "key": "bearer"}),
        projected,
        credentials("secret", "tok", "bearer", "token"),
    ),
    **simple("prometheus.ca.configMap", "ca", projected, credentials("configMap", "ca", "ca.crt", "ca.crt")),
    **simple("prometheus.ca.secret", "ca", projected, credentials("secret", "ca", "ca.crt", "ca.crt")),
    "prometheus.ca.key": (
        nested("prometheus.ca", {"configMap": "ca", "key": "root.pem"}),
        projected,
        credentials("configMap", "ca", "root.pem", "ca.crt"),
    ),
    "prometheus.tenant.header": (
        nested("prometheus.tenant", {"header": "X-Scope-OrgID", "value": "ml"}),
        lambda out: (env("operator", "PROMETHEUS_TENANT_HEADER")(out), env("forecaster", "PROMETHEUS_TENANT_HEADER")(out)),
        ("X-Scope-OrgID",) * 2,
    ),
    "prometheus.tenant.value": (
        nested("prometheus.tenant", {"header": "X-Scope-OrgID", "value": "ml"}),
        lambda out: (env("operator", "PROMETHEUS_TENANT")(out), env("forecaster", "PROMETHEUS_TENANT")(out)),
        ("ml",) * 2,
    ),
    **simple("operator.tickSeconds", 2.5, env("operator", "TICK_SECONDS"), "2.5"),
    **simple("operator.watchNamespaces", ["a", "b"], env("operator", "NAMESPACES"), "a,b"),
    **simple("operator.logLevel", "DEBUG", env("operator", "LOG_LEVEL"), "DEBUG"),
    **simple("operator.logFormat", "text", env("operator", "LOG_FORMAT"), "text"),
    **simple("forecaster.enabled", OFF, env("operator", "FORECASTER_URL"), ""),
    **simple("forecaster.workers", 3, env("forecaster", "WORKERS"), "3"),
    **simple("forecaster.logLevel", "DEBUG", env("forecaster", "LOG_LEVEL"), "DEBUG"),
    **simple("forecaster.logFormat", "text", env("forecaster", "LOG_FORMAT"), "text"),
    **simple("gateway.image.repository", "mirror:5000/g", env("operator", "GATEWAY_IMAGE"), "mirror:5000/g:0.1.0"),
    **simple("gateway.image.tag", "v9", env("operator", "GATEWAY_IMAGE"), "warmfront/gateway:v9"),
    **simple("gateway.image.digest", DIGEST, env("operator", "GATEWAY_IMAGE"), f"warmfront/gateway@{DIGEST}"),
    **simple("gateway.image.pullPolicy", "Never", env("operator", "GATEWAY_IMAGE_PULL_POLICY"), "Never"),
    **simple(
        "podSecurityContext",
        {"runAsUser": None, "runAsGroup": None, "fsGroup": None},
        pod("operator", "securityContext"),
        {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    ),
    **simple("rbac.aggregate", OFF, lambda out: [name for name in out.kinds() if "inferenceservices" in name], []),
    **simple("networkPolicy.enabled", OFF, lambda out: [name for name in out.kinds() if "NetworkPolicy" in name], []),
    **simple(
        "networkPolicy.metricsFrom",
        [PEER],
        lambda out: out.named("NetworkPolicy", "operator")["spec"]["ingress"][0]["from"],
        [PEER],
    ),
    **simple("podMonitor.enabled", ON, lambda out: len([name for name in out.kinds() if "PodMonitor" in name]), 3),
    "podMonitor.labels": (
        nested("podMonitor", {"enabled": True, "labels": {"release": "prometheus"}}),
        lambda out: out.named("PodMonitor", "gateways")["metadata"]["labels"]["release"],
        "prometheus",
    ),
    "podMonitor.interval": (
        nested("podMonitor", {"enabled": True, "interval": "5s"}),
        lambda out: out.named("PodMonitor", "gateways")["spec"]["podMetricsEndpoints"][0]["interval"],
        "5s",
    ),
}


def leaves(values: Any, path: str = "") -> Iterator[str]:
    """Paths of the values that can be set one by one."""
    whole = {"podSecurityContext", "resources.requests", "resources.limits"}
    if not isinstance(values, dict) or not values or any(path.endswith(name) for name in whole):
        yield path
        return
    for name, inner in values.items():
        yield from leaves(inner, f"{path}.{name}".strip("."))


def test_every_value_has_a_case():
    assert set(leaves(yaml.safe_load((CHARTS / "warmfront/values.yaml").read_text()))) == set(CASES)


@pytest.mark.parametrize("path", CASES)
def test_a_value_does_what_it_says(helm: Helm, defaults: Rendered, path: str):
    values, look, want = CASES[path]
    assert look(helm.render(values)) == want
    if path not in ("forecaster.enabled", "forecaster.workers"):
        assert _or_none(look, defaults) != want, "the default is the same: the case shows nothing"


def _or_none(look: Look, out: Rendered) -> object:
    try:
        return look(out)
    except (KeyError, ValueError):
        return None


REFUSED = {
    "a misspelt value": ({"operator": {"tickSecond": 5}}, "at '/operator': additional properties 'tickSecond' not allowed"),
    "a misspelt value at the top": ({"operators": {}}, "additional properties 'operators' not allowed"),
    "an address without a scheme": ({"prometheus": {"url": "prometheus:9090"}}, "at '/prometheus/url'"),
    "a tick of zero": ({"operator": {"tickSeconds": 0}}, "at '/operator/tickSeconds': minimum"),
    "a namespace that is none": ({"operator": {"watchNamespaces": ["Team A"]}}, "at '/operator/watchNamespaces/0'"),
    "the same namespace twice": ({"operator": {"watchNamespaces": ["a", "a"]}}, "at '/operator/watchNamespaces'"),
    "a log level that does not exist": ({"operator": {"logLevel": "LOUD"}}, "at '/operator/logLevel'"),
    "a tag in the repository": ({"operator": {"image": {"repository": "mirror:5000/op:v1"}}}, "at '/operator/image/repository'"),
    "a digest that is cut off": ({"gateway": {"image": {"digest": "sha256:12"}}}, "at '/gateway/image/digest'"),
    "a label that selects pods": (
        {"operator": {"podLabels": {"app.kubernetes.io/name": "x"}}},
        "at '/operator/podLabels/app.kubernetes.io~1name'",
    ),
    "a scrape interval above what rates need": ({"podMonitor": {"interval": "30s"}}, "at '/podMonitor/interval'"),
    "no worker": ({"forecaster": {"workers": 0}}, "at '/forecaster/workers'"),
    "two certificate authorities": (
        {"prometheus": {"ca": {"configMap": "a", "secret": "b"}}},
        "prometheus.ca.configMap and prometheus.ca.secret are both set: empty one of them",
    ),
    "a tenant's header without a tenant": (
        {"prometheus": {"tenant": {"header": "X-Scope-OrgID"}}},
        "prometheus.tenant.header is set and prometheus.tenant.value is not: set it",
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_refused(helm: Helm, fault: str):
    values, message = REFUSED[fault]
    assert message in helm.refusal(values)


def test_a_parent_chart_may_pass_its_globals(helm: Helm, defaults: Rendered):
    assert helm.render({"global": {"anything": 1}}) == defaults


def test_every_value_is_described_in_the_schema():
    schema = json.loads((CHARTS / "warmfront/values.schema.json").read_text())

    def undescribed(node: dict[str, Any], path: str) -> Iterator[str]:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
        if not node.get("description"):
            yield path
        for name, child in node.get("properties", {}).items():
            yield from undescribed(child, f"{path}.{name}")

    peers = "networkPolicy.metricsFrom"
    assert [path for path in undescribed(schema | {"description": "All."}, "") if peers not in path] == []


def test_values_can_be_combined(helm: Helm):
    # All cases at once, but for those that exclude each other.
    alone = {"prometheus.ca.secret", "forecaster.enabled", "nameOverride", "fullnameOverride"}
    everything = merged(*(values for path, (values, _, _) in CASES.items() if path not in alone))
    out = helm.render(everything)
    assert len(projected(out)) == 2
    assert out.env("operator")["WARMFRONT_OPERATOR_PROMETHEUS_TOKEN_FILE"] == "/etc/warmfront/prometheus/token"  # noqa: S105
    assert out.env("forecaster")["WARMFRONT_FORECASTER_PROMETHEUS_CA_FILE"] == "/etc/warmfront/prometheus/ca.crt"


def test_the_reference_names_every_value_with_its_default():
    table, _ = (CHARTS.parent / "docs/reference/chart.md").read_text().split("\n## Objects\n")
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| `")]
    documented = {row[0].strip("| `"): row[1].strip("`") for row in rows}
    values = yaml.safe_load((CHARTS / "warmfront/values.yaml").read_text())

    def default(path: str) -> str:
        value = values
        for name in path.split("."):
            value = value[name]
        return json.dumps(value)

    assert documented == {path: default(path) for path in CASES}

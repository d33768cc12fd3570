"""What the charts install: rights, pods, and that the two sides of each contract agree."""

import os
from typing import Any
from unittest import mock

import pytest
import yaml

from tests.charts.helm import CHARTS, Helm, Rendered
from warmfront_api.names import LABEL_SERVICE, PORT_METRICS
from warmfront_forecaster.settings import Settings as ForecasterSettings
from warmfront_operator.settings import Settings as OperatorSettings

COMPONENTS = ("operator", "forecaster")
NAMES = [
    "ClusterRole/ops-wf-warmfront-inferenceservices-edit",
    "ClusterRole/ops-wf-warmfront-inferenceservices-view",
    "ClusterRole/ops-wf-warmfront-operator",
    "ClusterRoleBinding/ops-wf-warmfront-operator",
    "Deployment/wf-warmfront-forecaster",
    "Deployment/wf-warmfront-operator",
    "NetworkPolicy/wf-warmfront-forecaster",
    "NetworkPolicy/wf-warmfront-operator",
    "Service/wf-warmfront-forecaster",
    "Service/wf-warmfront-operator",
    "ServiceAccount/wf-warmfront-forecaster",
    "ServiceAccount/wf-warmfront-operator",
]


def test_without_values_these_objects_and_no_others_are_installed(defaults: Rendered):
    assert defaults.kinds() == NAMES


def test_without_the_forecaster_nothing_of_it_is_left(helm: Helm):
    out = helm.render({"forecaster": {"enabled": False}, "podMonitor": {"enabled": True}})
    assert [name for name in out.kinds() if "forecaster" in name] == []


def test_names_stay_within_what_kubernetes_takes(helm: Helm):
    out = helm.render(release="a" * 53)
    assert max(len(item["metadata"]["name"]) for item in out.objects if item["kind"] == "Service") <= 63


def test_a_release_named_like_the_chart_does_not_say_it_twice(helm: Helm):
    assert "Deployment/warmfront-operator" in helm.render(release="warmfront").kinds()


# Rights


def rights(role: dict[str, Any]) -> dict[str, set[str]]:
    """Verbs by resource."""
    return {
        f"{group}/{resource}" if group else resource: set(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


CHILD = {"get", "list", "watch", "create", "patch", "delete"}
OPERATOR_RIGHTS = {
    "warmfront.dev/inferenceservices": {"list", "watch"},
    "warmfront.dev/inferenceservices/status": {"patch"},
    "apps/deployments": CHILD,
    "apps/deployments/scale": {"patch"},
    "services": CHILD,
    "configmaps": CHILD,
    "serviceaccounts": CHILD,
    "policy/poddisruptionbudgets": CHILD,
    "pods": {"list", "watch"},
    "events.k8s.io/events": {"create"},
}


def test_the_operator_may_do_what_it_does_and_no_more(defaults: Rendered):
    assert rights(defaults.named("ClusterRole", "-operator")) == OPERATOR_RIGHTS


def test_the_operators_account_is_the_one_that_is_bound(defaults: Rendered):
    binding = defaults.named("ClusterRoleBinding", "-operator")
    assert binding["roleRef"]["name"] == defaults.named("ClusterRole", "-operator")["metadata"]["name"]
    [subject] = binding["subjects"]
    assert subject == {
        "kind": "ServiceAccount",
        "name": defaults.pod("operator")["spec"]["serviceAccountName"],
        "namespace": "ops",
    }


def test_an_operator_of_some_namespaces_has_rights_there_only(helm: Helm):
    out = helm.render({"operator": {"watchNamespaces": ["a", "b"]}})
    cluster_wide = [name for name in out.kinds() if name.startswith("ClusterRole")]
    assert cluster_wide == NAMES[:2]
    for namespace in ("a", "b"):
        assert rights(out.named("Role", "-operator", namespace)) == OPERATOR_RIGHTS
        binding = out.named("RoleBinding", "-operator", namespace)
        assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "wf-warmfront-operator"}
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "wf-warmfront-operator", "namespace": "ops"}]


def test_whoever_may_view_sees_services_and_whoever_may_edit_changes_them(defaults: Rendered):
    view, edit = defaults.named("ClusterRole", "-view"), defaults.named("ClusterRole", "-edit")
    roles = {"view": view, "edit": edit}
    reach = {
        name: {label.rsplit("-", 1)[1] for label in role["metadata"]["labels"] if "aggregate-to" in label}
        for name, role in roles.items()
    }
    assert reach == {"view": {"view", "edit", "admin"}, "edit": {"edit", "admin"}}
    assert set.union(*rights(view).values()) == {"get", "list", "watch"}
    # Status is the operator's.
    assert "warmfront.dev/inferenceservices/status" not in rights(edit)
    assert rights(edit)["warmfront.dev/inferenceservices/scale"] == {"update", "patch"}


# Pods


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_pod_keeps_to_restricted_pod_security_and_a_read_only_root(defaults: Rendered, component: str):
    spec, container = defaults.pod(component)["spec"], defaults.container(component)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["volumes"] == [{"name": "tmp", "emptyDir": {}}]
    assert container["volumeMounts"] == [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108
    assert {"hostNetwork", "hostPID", "hostIPC"} & spec.keys() == set()


@pytest.mark.parametrize("component", COMPONENTS)
def test_no_variable_of_a_service_gets_among_the_settings(defaults: Rendered, component: str):
    # A Service wf-forecaster would bring WF_FORECASTER_PORT=tcp://...; one called warmfront-forecaster our own prefix.
    assert defaults.pod(component)["spec"]["enableServiceLinks"] is False


def test_only_the_operator_gets_a_token(defaults: Rendered):
    tokens = {name: defaults.pod(name)["spec"]["automountServiceAccountToken"] for name in COMPONENTS}
    assert tokens == {"operator": True, "forecaster": False}
    assert not any(defaults.named("ServiceAccount", name)["automountServiceAccountToken"] for name in COMPONENTS)


def test_two_operators_never_run_side_by_side(defaults: Rendered):
    spec = defaults.named("Deployment", "operator")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


@pytest.mark.parametrize("component", COMPONENTS)
def test_services_and_policies_reach_the_pods(defaults: Rendered, component: str):
    pod, container = defaults.pod(component), defaults.container(component)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    service = defaults.named("Service", component)["spec"]
    policy = defaults.named("NetworkPolicy", component)["spec"]
    for selector in (service["selector"], policy["podSelector"]["matchLabels"]):
        assert selector.items() <= pod["metadata"]["labels"].items()
    [port] = service["ports"]
    assert ports[port["targetPort"]] == port["port"] == policy["ingress"][0]["ports"][0]["port"]
    assert {container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")} <= ports.keys()
    assert pod["metadata"]["annotations"] == {"prometheus.io/scrape": "true", "prometheus.io/port": str(port["port"])}


def test_the_operator_still_reaches_the_forecaster_when_scraping_is_limited(helm: Helm):
    out = helm.render({"networkPolicy": {"metricsFrom": [{"podSelector": {}}]}})
    operator, scraper = out.named("NetworkPolicy", "forecaster")["spec"]["ingress"][0]["from"]
    assert operator["podSelector"]["matchLabels"].items() <= out.pod("operator")["metadata"]["labels"].items()
    assert scraper == {"podSelector": {}}


# Contracts with the components


PROMETHEUS = {
    "url": "http://p:9090",
    "tokenSecret": {"name": "t"},
    "ca": {"secret": "c"},
    "tenant": {"header": "X-Scope-OrgID", "value": "ml"},
}
Settings = OperatorSettings | ForecasterSettings


def settings_of(component: str, out: Rendered) -> Settings:
    """What a component makes of the environment that the chart gives it; every variable must be one of its settings."""
    kind: type[Settings] = {"operator": OperatorSettings, "forecaster": ForecasterSettings}[component]
    env = out.env(component)
    prefix = f"WARMFRONT_{component.upper()}_"
    ours = {name.removeprefix(prefix).lower() for name in env if name.startswith(prefix)}
    assert ours <= kind.model_fields.keys()
    with mock.patch.dict(os.environ, env, clear=True):
        return kind()


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_reads_prometheus_from_what_the_chart_sets(helm: Helm, component: str):
    out = helm.render({"prometheus": PROMETHEUS})
    settings = settings_of(component, out)
    assert settings.prometheus_url == "http://p:9090"
    assert (settings.prometheus_tenant_header, settings.prometheus_tenant) == ("X-Scope-OrgID", "ml")
    mounts = {mount["name"]: mount["mountPath"] for mount in out.container(component)["volumeMounts"]}
    files = {str(settings.prometheus_token_file), str(settings.prometheus_ca_file)}
    assert files == {f"{mounts['prometheus']}/token", f"{mounts['prometheus']}/ca.crt"}


def test_the_components_take_their_own_values(helm: Helm):
    values = {"operator": {"watchNamespaces": ["a", "b"], "tickSeconds": 5}, "forecaster": {"workers": 3}}
    out = helm.render(values)
    operator, forecaster = settings_of("operator", out), settings_of("forecaster", out)
    assert isinstance(operator, OperatorSettings)
    assert isinstance(forecaster, ForecasterSettings)
    assert (operator.namespaces, operator.tick_seconds) == (("a", "b"), 5)
    assert forecaster.workers == 3


def test_ports_are_those_that_the_components_listen_on(defaults: Rendered):
    operator, forecaster = settings_of("operator", defaults), settings_of("forecaster", defaults)
    assert isinstance(operator, OperatorSettings)
    assert isinstance(forecaster, ForecasterSettings)
    ports = {name: defaults.container(name)["ports"][0]["containerPort"] for name in COMPONENTS}
    assert ports == {"operator": operator.metrics_port, "forecaster": forecaster.port}


def test_the_operator_asks_the_forecaster_where_it_listens(defaults: Rendered):
    service = defaults.named("Service", "forecaster")
    url = f"http://{service['metadata']['name']}.ops.svc:{service['spec']['ports'][0]['port']}"
    assert defaults.env("operator")["WARMFRONT_OPERATOR_FORECASTER_URL"] == url
    assert defaults.env("forecaster")["WARMFRONT_FORECASTER_PORT"] == str(service["spec"]["ports"][0]["port"])


def test_pod_monitors_replace_annotations_and_find_every_gateway(helm: Helm):
    out = helm.render({"podMonitor": {"enabled": True}})
    assert all("annotations" not in out.pod(name)["metadata"] for name in COMPONENTS)
    gateways = out.named("PodMonitor", "gateways")["spec"]
    assert gateways["selector"] == {"matchExpressions": [{"key": LABEL_SERVICE, "operator": "Exists"}]}
    assert gateways["namespaceSelector"] == {"any": True}
    assert gateways["podMetricsEndpoints"][0]["portNumber"] == PORT_METRICS
    for name in COMPONENTS:
        monitor = out.named("PodMonitor", name)["spec"]
        assert monitor["selector"]["matchLabels"].items() <= out.pod(name)["metadata"]["labels"].items()
        assert monitor["podMetricsEndpoints"][0]["port"] in {port["name"] for port in out.container(name)["ports"]}


def test_pod_monitors_look_at_the_served_namespaces_only(helm: Helm):
    out = helm.render({"podMonitor": {"enabled": True}, "operator": {"watchNamespaces": ["a"]}})
    assert out.named("PodMonitor", "gateways")["spec"]["namespaceSelector"] == {"matchNames": ["a"]}


# The charts themselves


@pytest.mark.parametrize("chart", ["warmfront", "warmfront-crds"])
def test_a_chart_passes_helms_linter(helm: Helm, chart: str):
    done = helm("lint", "--strict", str(CHARTS / chart))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("chart", ["warmfront", "warmfront-crds"])
def test_a_cluster_that_is_too_old_is_refused(helm: Helm, chart: str):
    done = helm("template", "wf", str(CHARTS / chart), "--kube-version", "1.30.4")
    assert done.returncode != 0
    assert "kubeVersion: >=1.31.0-0" in done.stderr


def test_both_charts_are_of_this_release():
    from importlib.metadata import version  # noqa: PLC0415 - the installed distribution's

    for chart in ("warmfront", "warmfront-crds"):
        meta = yaml.safe_load((CHARTS / chart / "Chart.yaml").read_text())
        assert meta["version"] == meta["appVersion"] == version("warmfront")


def test_the_definitions_stay_when_their_release_goes(helm: Helm):
    out = helm.render(chart="warmfront-crds")
    assert out.kinds() == ["CustomResourceDefinition/inferenceservices.warmfront.dev"]
    assert out.objects[0]["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


@pytest.mark.parametrize(
    ("values", "present", "absent"),
    [
        pytest.param({}, "WARNING: prometheus.url is not set", "The forecaster is off", id="without Prometheus"),
        pytest.param({"prometheus": {"url": "http://p"}}, "serves all namespaces", "WARNING", id="with Prometheus"),
        pytest.param({"forecaster": {"enabled": False}}, "The forecaster is off", "ahead of their", id="without forecaster"),
        pytest.param(
            {"operator": {"watchNamespaces": ["a", "b"]}}, "the namespaces a, b", "all namespaces.", id="some namespaces"
        ),
        pytest.param({"podMonitor": {"enabled": True}}, "rollout status", "prometheus.io/scrape and", id="with PodMonitors"),
    ],
)
def test_the_notes_say_what_is_still_to_do(helm: Helm, values: dict[str, Any], present: str, absent: str):
    done = helm("install", "wf", str(CHARTS / "warmfront"), "--dry-run=client", "--namespace", "ops", values=values)
    assert done.returncode == 0, done.stderr
    notes = done.stdout.split("\nNOTES:\n")[1]
    assert present in notes
    assert absent not in notes

"""The CustomResourceDefinition as a whole: what the design asks of every field, and of the resource."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from warmfront_api.crd import custom_resource_definition
from warmfront_api.inferenceservice import InferenceServiceSpec
from warmfront_api.status import InferenceServiceStatus

SAMPLES = Path(__file__).parents[2] / "crds" / "samples" / "good"
VERSION = custom_resource_definition()["spec"]["versions"][0]
ROOT = VERSION["schema"]["openAPIV3Schema"]


def nodes(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every node of a schema with its path."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from nodes(schema["additionalProperties"], f"{path}{{}}")


NODES = [node for part in ("spec", "status") for node in nodes(ROOT["properties"][part], part)]


def test_there_are_fields_to_check():
    paths = dict(NODES)
    assert {"spec.scaling.capacity.decodeTokensPerSecond", "spec.engine.env[].valueFrom.secretKeyRef.key"} <= paths.keys()


@pytest.mark.parametrize(("path", "node"), [pytest.param(*node, id=node[0]) for node in NODES])
def test_every_field_is_bounded_and_described(path: str, node: dict[str, Any]):
    kind = node.get("type", "int-or-string")
    bounds = {
        "string": {"maxLength"},
        "integer": {"minimum", "maximum"},
        "array": {"maxItems"},
        "int-or-string": {"maxLength", "minimum", "maximum"},
    }
    if "enum" not in node:
        assert bounds.get(kind, set()) <= node.keys()
    if kind == "object" and "additionalProperties" in node:
        assert "maxProperties" in node
    if not path.endswith(("{}", "[]")):
        assert node["description"].endswith(".")
    assert kind in ("string", "integer", "array", "object", "boolean", "int-or-string")


def test_every_rule_has_a_message_that_names_its_field_and_the_mend():
    messages = [(path, rule["message"]) for path, node in NODES for rule in node.get("x-kubernetes-validations", ())]
    assert len(messages) > 10
    for path, message in messages:
        field = path.removeprefix("spec.").split("[")[0]
        assert field in message, (path, message)
        assert any(word in message for word in (": ", " instead", "for example")), message


def test_the_columns_are_those_of_the_design():
    names = [column["name"] for column in VERSION["additionalPrinterColumns"]]
    assert names == ["Ready", "Desired", "Ready replicas", "Binding", "Forecast", "Next peak", "Age"]


def test_what_columns_and_scale_read_exists_in_the_schema():
    scale = VERSION["subresources"]["scale"].values()
    columns = [column["jsonPath"] for column in VERSION["additionalPrinterColumns"]]
    plain = [path for path in [*scale, *columns] if path.startswith((".spec", ".status")) and "[?" not in path]
    assert len(plain) == 8
    for path in plain:
        node = ROOT
        for name in path.strip(".").split("."):
            node = node["properties"][name]


def test_a_resource_that_no_operator_has_seen_is_not_current():
    default = ROOT["properties"]["status"]["default"]
    status = InferenceServiceStatus.model_validate(default)
    assert status.observed_generation == -1
    assert [(c.type, c.status, c.reason) for c in status.conditions] == [("Ready", "Unknown", "Pending")]


def defaulted(value: Any, schema: dict[str, Any]) -> Any:
    """What the API server stores, by the rule of its documentation: defaults fill absent fields, from the top down."""
    if isinstance(value, list):
        return [defaulted(item, schema["items"]) for item in value]
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    filled = dict(value)
    for name, child in schema["properties"].items():
        if name not in filled and "default" in child:
            filled[name] = copy.deepcopy(child["default"])
    return {name: defaulted(inner, schema["properties"].get(name, {})) for name, inner in filled.items()}


def without_empties(value: Any) -> Any:
    """Empty lists and objects mean the same as absent ones."""
    if isinstance(value, list):
        return [without_empties(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: without_empties(inner) for name, inner in value.items()}
    return {name: inner for name, inner in kept.items() if inner not in ({}, [])}


def optional_paths(value: dict[str, Any], schema: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of the fields that a user may leave out."""
    for name, inner in value.items():
        child = schema.get("properties", {}).get(name)
        if child is None:
            continue
        if name not in schema.get("required", ()):
            yield (*path, name)
        if isinstance(inner, dict):
            yield from optional_paths(inner, child, (*path, name))


def sample(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = yaml.safe_load((SAMPLES / f"{name}.yaml").read_text())["spec"]
    return spec


CHAT = sample("chat")
OPTIONAL = list(optional_paths(CHAT, ROOT["properties"]["spec"]))


def drop(spec: dict[str, Any], path: tuple[str, ...]) -> None:
    """Takes a field out, where its parents are still there."""
    for name in path[:-1]:
        spec = spec.get(name, {})
    spec.pop(path[-1], None)


@given(st.sets(st.sampled_from(OPTIONAL)))
def test_the_operator_and_the_api_server_agree_on_every_default(left_out: set[tuple[str, ...]]):
    spec = copy.deepcopy(CHAT)
    for path in left_out:
        drop(spec, path)
    stored = defaulted(spec, ROOT["properties"]["spec"])
    parsed = InferenceServiceSpec.model_validate(spec).to_wire()
    assert without_empties(stored) == without_empties(parsed)


def test_the_sample_with_everything_sets_every_field():
    # What is in the schema only to be refused cannot be set, and a revision has its own sample for paths.
    refused = {"hostNetwork", "shareProcessNamespace", "serviceAccountName", "terminationGracePeriodSeconds"}

    def unset(value: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
        for name, child in schema.get("properties", {}).items():
            if name not in value and name not in refused:
                yield name
            elif isinstance(value.get(name), dict):
                yield from unset(value[name], child)

    assert list(unset(CHAT, ROOT["properties"]["spec"])) == []

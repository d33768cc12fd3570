"""A pydantic model as a structural Kubernetes schema. Pure.

pydantic writes JSON Schema 2020-12 with references; a CustomResourceDefinition takes a subset of OpenAPI 3.0 without any
("structural schema"). Each step here is one of the differences. A keyword that is not known to survive is an error, never
dropped: a lost bound would let a bad resource in.
"""

from typing import Any, Final

from pydantic import BaseModel

from warmfront_api.errors import UnsupportedSchemaError

Schema = dict[str, Any]

RULES: Final = "x-kubernetes-validations"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
PRESERVE_UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"

_ORDER: Final = (
    "description",
    "type",
    INT_OR_STRING,
    "anyOf",
    "format",
    "enum",
    "default",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    PRESERVE_UNKNOWN,
    "required",
    "properties",
    "additionalProperties",
    "items",
    RULES,
)


def structural(model: type[BaseModel]) -> Schema:
    """Structural schema of `model`, in the API's own spelling.

    Raises:
        UnsupportedSchemaError: the model uses something that a CustomResourceDefinition cannot say.
    """
    document = model.model_json_schema(by_alias=True)
    return _convert(document, document.get("$defs", {}), model.__name__)


def _convert(node: Schema, definitions: Schema, path: str) -> Schema:
    """One node and all below it; `path` is for messages only."""
    flat = _flatten({key: value for key, value in node.items() if key not in ("$defs", "title")}, definitions)
    flat = _const_as_enum(_merge_int_or_string(flat, path))
    flat = _convert_object(flat, definitions, path)
    if "items" in flat:
        flat["items"] = _convert(flat["items"], definitions, f"{path}[]")
    return _ordered(_with_settled_default(flat), path)


def _flatten(node: Schema, definitions: Schema) -> Schema:
    """Puts references in place and takes `null` branches out, until neither is left."""
    while True:
        if "$ref" in node:
            target = definitions[node["$ref"].removeprefix("#/$defs/")]
            node = _overlay(target, {key: value for key, value in node.items() if key != "$ref"})
        elif any(branch.get("type") == "null" for branch in node.get("anyOf", ())):
            node = _without_null(node)
        else:
            return node


def _without_null(node: Schema) -> Schema:
    """`X | None` as plain X: the API server drops nulls of fields that are not nullable, which is what unset means."""
    branches = [branch for branch in node["anyOf"] if branch.get("type") != "null"]
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    return _overlay(branches[0], rest) if len(branches) == 1 else rest | {"anyOf": branches}


def _overlay(base: Schema, over: Schema) -> Schema:
    """`base` with the keys of `over` on top; CEL rules of both hold."""
    merged = {key: value for key, value in (base | over).items() if key != "title"}
    rules = [*base.get(RULES, ()), *over.get(RULES, ())]
    return merged | {RULES: rules} if rules else merged


def _merge_int_or_string(node: Schema, path: str) -> Schema:
    """`str | int` as Kubernetes' int-or-string; the bounds of both branches move up, where each binds its own type."""
    branches = node.get("anyOf")
    if branches is None:
        return node
    if sorted(branch.get("type", "") for branch in branches) != ["integer", "string"]:
        raise UnsupportedSchemaError(f"{path}: a union other than `str | int` has no structural schema; use one type")
    bounds: Schema = {}
    for branch in branches:
        bounds |= {key: value for key, value in branch.items() if key != "type"}
    return node | bounds | {INT_OR_STRING: True, "anyOf": [{"type": "integer"}, {"type": "string"}]}


def _const_as_enum(node: Schema) -> Schema:
    """OpenAPI 3.0 has no `const`."""
    if "const" not in node:
        return node
    return {key: value for key, value in node.items() if key != "const"} | {"enum": [node["const"]]}


def _convert_object(node: Schema, definitions: Schema, path: str) -> Schema:
    """Objects: named properties, or a map, or free form; a structural schema allows only one of them."""
    result = dict(node)
    extra = result.pop("additionalProperties", None)
    if "properties" in result:
        properties = result["properties"].items()
        result["properties"] = {name: _convert(value, definitions, f"{path}.{name}") for name, value in properties}
    elif isinstance(extra, dict):
        result["additionalProperties"] = _convert(extra, definitions, f"{path}{{}}")
    elif result.get("type") == "object" and not result.get(PRESERVE_UNKNOWN):
        raise UnsupportedSchemaError(f"{path}: a free-form object loses its content; say {PRESERVE_UNKNOWN} or name its fields")
    return result


def _with_settled_default(node: Schema) -> Schema:
    """Only defaults that add something: no null, nothing empty, and `{}` where the fields below have their own.

    The API server fills a nested default only when its parent is there, so the parent's `default: {}` is what opens the way.
    """
    result = dict(node)
    wanted = _pruned(result.pop("default", None))
    if wanted is None:
        return result
    own = defaults_below(result)
    if wanted == own:
        return result | {"default": {}} if own else result
    return result | {"default": wanted}


def _pruned(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    """`value` without nulls and without empty lists and objects below the top."""
    if isinstance(value, dict):
        kept = {key: _pruned(inner) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if inner is not None and inner not in ({}, [])}
    return None if value == [] else value


def defaults_below(node: Schema) -> Schema:
    """What the API server makes of `{}` under this schema."""
    filled: Schema = {}
    for name, child in node.get("properties", {}).items():
        if "default" in child:
            below = defaults_below(child)
            filled[name] = below | child["default"] if isinstance(child["default"], dict) else child["default"]
    return filled


def _ordered(node: Schema, path: str) -> Schema:
    """The keywords in a reader's order.

    Raises:
        UnsupportedSchemaError: a keyword that no structural schema has.
    """
    unknown = node.keys() - set(_ORDER)
    if unknown:
        raise UnsupportedSchemaError(
            f"{path}: {', '.join(sorted(unknown))} has no meaning in a structural schema; use another bound"
        )
    if node.get("type") == "number":
        raise UnsupportedSchemaError(f"{path}: the API has no floats; use an integer of a smaller unit, or a decimal string")
    result: Schema = {key: node[key] for key in _ORDER if key in node}
    if RULES in result:  # pydantic sorts the keys of what it takes over; the rule reads first
        result[RULES] = [{"rule": rule["rule"], "message": rule["message"]} for rule in result[RULES]]
    return result

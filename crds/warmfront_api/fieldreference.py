"""The field reference of the documentation, written from the CustomResourceDefinition. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from warmfront_api.crd import CATEGORY, CRD_NAME, SHORT_NAME, printer_columns, root_schema
from warmfront_api.names import API_VERSION, KIND
from warmfront_api.schema import INT_OR_STRING, PRESERVE_UNKNOWN, RULES, Schema
from warmfront_api.text import PATTERN_NAMES

_INTRODUCTION: Final = f"""\
<!-- Generated from crds/warmfront_api by `make generate`: edit the models, not this file. -->

# {KIND}

`apiVersion: {API_VERSION}`, `kind: {KIND}`, namespaced. Full resource name `{CRD_NAME}`, short name `{SHORT_NAME}`, category
`{CATEGORY}`. Another project also has a kind of this name: scripts do well to use the full resource name.

Percentages are integers, durations are integer seconds. An unset field takes its default when it is stored. A field that is not
listed here is refused by `kubectl apply`; a client that does not ask for strict validation has it dropped by the API server.
"""

_BOUNDS: Final = (
    ("minimum", ">= {}"),
    ("maximum", "<= {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} items"),
    ("maxItems", "at most {} items"),
    ("minProperties", "at least {} keys"),
    ("maxProperties", "at most {} keys"),
)


@dataclass(frozen=True, kw_only=True)
class _Object:
    """An object with named fields, and where it stands."""

    path: str
    schema: Schema


def field_reference() -> str:
    """The whole page, Markdown."""
    root = root_schema()
    sections = [_INTRODUCTION, _root_rules(root), _columns_section()]
    for part in ("spec", "status"):
        sections += map(_section, _objects(_Object(path=part, schema=root["properties"][part])))
    return "\n".join(section for section in sections if section)


def _objects(start: _Object) -> Iterator[_Object]:
    """`start` and every object with named fields below it, in reading order."""
    yield start
    for name, child in start.schema["properties"].items():
        part = _element(_Object(path=f"{start.path}.{name}", schema=child))
        if "properties" in part.schema:
            yield from _objects(part)


def _element(part: _Object) -> _Object:
    """What a list holds; anything else as it is."""
    if part.schema.get("type") != "array":
        return part
    return _element(_Object(path=f"{part.path}[]", schema=part.schema["items"]))


def _root_rules(root: Schema) -> str:
    return f"## Name\n\n{_rule_list(root)}"


def _columns_section() -> str:
    rows = [f"| {column['name']} | {column['description']} |" for column in printer_columns()]
    return "\n".join([f"## Columns of `kubectl get {SHORT_NAME}`", "", "| Column | Meaning |", "|---|---|", *rows, ""])


def _section(part: _Object) -> str:
    required = part.schema.get("required", ())
    rows = [_row(name, field, required=name in required) for name, field in part.schema["properties"].items()]
    table = ["| Field | Type | Default | Bounds | Meaning |", "|---|---|---|---|---|", *rows, ""]
    head = [f"## `{part.path}`", "", part.schema.get("description", ""), ""]
    rules = [_rule_list(part.schema)] if RULES in part.schema else []
    return "\n".join(head + table + rules)


def _row(name: str, field: Schema, *, required: bool) -> str:
    cells = (f"`{name}`", type_text(field), _default_text(field, required=required), _bounds_text(field), _meaning(field))
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def type_text(field: Schema) -> str:
    """The type of a field in words."""
    if field.get(INT_OR_STRING):
        return "integer or string"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field.get("type") == "array":
        return f"list of {type_text(field['items'])}"
    if "additionalProperties" in field:
        return f"map of {type_text(field['additionalProperties'])}"
    if field.get(PRESERVE_UNKNOWN) or field.get("type") == "object":
        return "object"
    return "time" if field.get("format") == "date-time" else str(field["type"])


def _default_text(field: Schema, *, required: bool) -> str:
    if required:
        return "**required**"
    default: Any = field.get("default")
    return "" if default is None or isinstance(default, dict) else f"`{json.dumps(default)}`"


def _bounds_text(field: Schema) -> str:
    bounds = [text.format(field[key]) for key, text in _BOUNDS if key in field]
    pattern = field.get("pattern")
    shape = [PATTERN_NAMES.get(pattern, f"`{pattern}`")] if pattern else []
    return ", ".join(shape + bounds)


def _meaning(field: Schema) -> str:
    messages = [f"{rule['message']}." for rule in field.get(RULES, ()) if "properties" not in field]
    return " ".join([field.get("description", ""), *messages])


def _rule_list(node: Schema) -> str:
    return "\n".join([*(f"- {rule['message']}." for rule in node[RULES]), ""])

"""A pydantic model as a structural schema: each difference between JSON Schema and what Kubernetes takes."""

from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from warmfront_api.base import ApiModel, keyed_list, rules
from warmfront_api.errors import UnsupportedSchemaError
from warmfront_api.schema import structural


class Colour(StrEnum):
    """Of paint."""

    RED = "red"
    BLUE = "blue"


class Leaf(ApiModel):
    """A leaf."""

    size_bytes: Annotated[int, Field(ge=1, le=9)] = 3
    note: Annotated[str | None, Field(max_length=5)] = None


class Plain(ApiModel):
    """No default anywhere."""

    tags: Annotated[dict[str, Annotated[str, Field(max_length=4)]], Field(max_length=2)] = {}


def properties(model: type[ApiModel]) -> dict[str, Any]:
    result: dict[str, Any] = structural(model)["properties"]
    return result


def test_fields_are_spelt_as_on_the_wire_and_titles_are_gone():
    assert structural(Leaf) == {
        "description": "A leaf.",
        "type": "object",
        "properties": {
            "sizeBytes": {"type": "integer", "default": 3, "minimum": 1, "maximum": 9},
            "note": {"type": "string", "maxLength": 5},
        },
    }


def test_a_field_that_is_called_title_or_default_survives():
    class Named(ApiModel):
        title: Annotated[str, Field(max_length=1)]
        default: Annotated[str, Field(max_length=1)]

    assert properties(Named) == {"title": {"type": "string", "maxLength": 1}, "default": {"type": "string", "maxLength": 1}}


def test_a_nested_model_stands_in_place_with_the_fields_own_description():
    class Parent(ApiModel):
        leaf: Annotated[Leaf, Field(description="Of the field.")]

    parent = structural(Parent)
    assert parent["required"] == ["leaf"]
    assert parent["properties"]["leaf"]["description"] == "Of the field."
    assert parent["properties"]["leaf"]["properties"]["sizeBytes"]["default"] == 3


def test_a_parent_whose_default_adds_nothing_opens_the_way_for_the_defaults_below():
    class Parent(ApiModel):
        leaf: Leaf = Leaf()

    assert properties(Parent)["leaf"]["default"] == {}


def test_a_parents_own_default_is_kept_where_it_differs_from_what_is_below():
    class Parent(ApiModel):
        leaf: Leaf = Leaf(size_bytes=7)

    assert properties(Parent)["leaf"]["default"] == {"sizeBytes": 7}


def test_a_parents_own_default_keeps_what_it_says_of_a_grandchild():
    class Middle(ApiModel):
        leaf: Leaf = Leaf()

    class Parent(ApiModel):
        middle: Middle = Middle(leaf=Leaf(size_bytes=8))

    assert properties(Parent)["middle"]["default"] == {"leaf": {"sizeBytes": 8}}
    assert properties(Parent)["middle"]["properties"]["leaf"]["default"] == {}


def test_nothing_empty_becomes_a_default():
    class Parent(ApiModel):
        plain: Plain = Plain()
        names: Annotated[list[Annotated[str, Field(max_length=3)]], Field(max_length=2)] = []

    assert "default" not in properties(Parent)["plain"]
    assert "default" not in properties(Parent)["names"]


def test_an_empty_text_and_a_zero_are_defaults():
    class Values(ApiModel):
        text: Annotated[str, Field(max_length=3)] = ""
        count: Annotated[int, Field(ge=0, le=3)] = 0
        flag: bool = False

    assert {name: field["default"] for name, field in properties(Values).items()} == {"text": "", "count": 0, "flag": False}


def test_enums_and_literals_list_their_values():
    class Choice(ApiModel):
        colour: Colour = Colour.BLUE
        size: Literal["S", "L"]
        only: Literal["one"]
        maybe: Literal["x", "y"] | None = None

    assert properties(Choice) == {
        "colour": {"description": "Of paint.", "type": "string", "enum": ["red", "blue"], "default": "blue"},
        "size": {"type": "string", "enum": ["S", "L"]},
        "only": {"type": "string", "enum": ["one"]},
        "maybe": {"type": "string", "enum": ["x", "y"]},
    }


def test_text_or_integer_is_an_int_or_string_with_the_bounds_of_both():
    class Amounts(ApiModel):
        limits: Annotated[
            dict[str, Annotated[str, Field(max_length=8, pattern="^[0-9]+m?$")] | Annotated[int, Field(ge=0, le=99)]],
            Field(max_length=2),
        ]

    assert properties(Amounts)["limits"] == {
        "type": "object",
        "maxProperties": 2,
        "additionalProperties": {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": "^[0-9]+m?$",
            "maxLength": 8,
            "minimum": 0,
            "maximum": 99,
        },
    }


def test_rules_of_a_model_and_of_the_field_that_holds_it_both_hold():
    class Ruled(ApiModel):
        model_config = {"json_schema_extra": rules(("self.a > 0", "a must be positive"))}
        a: Annotated[int, Field(ge=-5, le=5)]

    class Parent(ApiModel):
        ruled: Annotated[Ruled, Field(json_schema_extra=rules(("self.a < 4", "a must be below four")))]

    assert properties(Parent)["ruled"]["x-kubernetes-validations"] == [
        {"rule": "self.a > 0", "message": "a must be positive"},
        {"rule": "self.a < 4", "message": "a must be below four"},
    ]


def test_a_keyed_list_keeps_its_keys():
    class Item(ApiModel):
        name: Annotated[str, Field(max_length=3)]

    class Parent(ApiModel):
        items: Annotated[list[Item], Field(max_length=3, json_schema_extra=keyed_list("name"))] = []

    items = properties(Parent)["items"]
    assert items["x-kubernetes-list-type"] == "map"
    assert items["x-kubernetes-list-map-keys"] == ["name"]
    assert items["items"]["required"] == ["name"]


def test_a_free_form_object_keeps_what_it_holds():
    class Free(ApiModel):
        affinity: Annotated[dict[str, Any] | None, Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})] = None

    assert properties(Free)["affinity"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class FloatingPoint(ApiModel):
    share: Annotated[float, Field(ge=0, le=1)]


class OpenInterval(ApiModel):
    count: Annotated[int, Field(gt=0)]


class FreeForm(ApiModel):
    anything: dict[str, Any] = {}


class OtherUnion(ApiModel):
    value: str | bool


@pytest.mark.parametrize(
    ("model", "message"),
    [
        pytest.param(FloatingPoint, "FloatingPoint.share: the API has no floats", id="a float"),
        pytest.param(
            OpenInterval, "OpenInterval.count: exclusiveMinimum has no meaning", id="a bound that OpenAPI 3.0 spells otherwise"
        ),
        pytest.param(
            FreeForm, "FreeForm.anything: a free-form object loses its content", id="an object whose content would be pruned"
        ),
        pytest.param(OtherUnion, "OtherUnion.value: a union other than", id="a union that has no structural form"),
    ],
)
def test_what_a_definition_cannot_say_is_an_error_that_names_the_field(model: type[ApiModel], message: str):
    with pytest.raises(UnsupportedSchemaError, match=message):
        structural(model)

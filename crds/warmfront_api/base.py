"""What every model of the API shares: camelCase on the wire, unknown fields refused, CEL rules."""

from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict


def rules(*pairs: tuple[str, str]) -> JsonDict:
    """CEL rules, each ``(expression, message in the user's words)``, as ``x-kubernetes-validations``."""
    return {"x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in pairs]}


def keyed_list(*keys: str) -> JsonDict:
    """A list whose items server-side apply merges by `keys`, instead of replacing the whole list."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


class ApiModel(BaseModel):
    """A frozen piece of a resource. Absent optional fields stay absent when dumped."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        use_enum_values=False,
    )

    def to_wire(self) -> dict[str, Any]:
        """JSON-ready dict in the API's own spelling, without unset optionals."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

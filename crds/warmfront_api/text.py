"""Kinds of text and number that several models use, each with its bounds; and the CEL rule on the keys of a map."""

from typing import Annotated, Final

from pydantic import Field, StringConstraints

DNS_SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
DNS_LABEL: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
LABEL_VALUE: Final = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
# As in a Pod, but never negative.
QUANTITY: Final = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$"

# What the field reference says instead of the expression.
PATTERN_NAMES: Final = {
    DNS_SUBDOMAIN: "a DNS subdomain",
    DNS_LABEL: "a DNS label",
    LABEL_VALUE: "a label value",
    QUANTITY: "a quantity, not negative",
}

# The largest integer that JSON carries exactly.
LARGEST_INTEGER: Final = 9_007_199_254_740_991

ShortText = Annotated[str, StringConstraints(max_length=1024)]
LongText = Annotated[str, StringConstraints(max_length=4096)]
ObjectName = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=DNS_SUBDOMAIN)]
VolumeName = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=DNS_LABEL)]
LabelValue = Annotated[str, StringConstraints(max_length=63, pattern=LABEL_VALUE)]
Quantity = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=QUANTITY)]
Amount = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]

_KEY: Final = "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"


def key_rule(field: str, what: str) -> tuple[str, str]:
    """Keys of `field` must be keys that Kubernetes takes; a structural schema bounds a map's values only."""
    return (
        f"self.all(key, key.size() <= 317 && key.matches('{_KEY}'))",
        f"{field} has a key that is no {what}: use NAME or DOMAIN/NAME of letters, digits, '-', '_' and '.'",
    )

"""Text as the API wants it: times and bounded messages."""

from datetime import UTC, datetime
from typing import Final

MAX_MESSAGE: Final = 1024


def clip(message: str, limit: int = MAX_MESSAGE) -> str:
    """The message within the API's bound."""
    return message if len(message) <= limit else f"{message[: limit - 3]}..."


def wire_time(time: datetime) -> str:
    """As Kubernetes writes times: UTC, whole seconds."""
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

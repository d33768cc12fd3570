"""Log lines: one JSON object each, or text for people."""

import json
import logging
from datetime import UTC, datetime


class JsonFormatter(logging.Formatter):
    """`{"time", "level", "logger", "message"}`, and `exception` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def set_up_logging(*, level: str, style: str) -> None:
    """Log to stderr. `style` is `json` or `text`."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if style == "json" else logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # Broken HTTP from outside is answered 400 and would fill the log with tracebacks; our own failures are logged by us.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)

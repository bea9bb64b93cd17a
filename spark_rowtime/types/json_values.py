"""Values as JSON: times in ISO 8601, intervals in seconds."""

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any


def load(text: str | bytes) -> Any:
    """Returns the value of JSON that somebody else may have written; ValueError, too, if it is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def dump(value: Any) -> str:
    """Returns a value as JSON."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """Converts a value for JSON: times to ISO 8601, intervals to seconds, and what JSON does not have to text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return _time(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)


def _time(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")

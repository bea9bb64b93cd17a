"""The settings of a stream as stores keep them: a JSON object, in which those are missing that are not set."""

import json
from dataclasses import asdict

from spark_rowtime.store.base import StreamSettings


def settings_text(settings: StreamSettings) -> str:
    """Returns the settings as a store keeps them."""
    return json.dumps({name: value for name, value in asdict(settings).items() if value is not None})


def settings_of(text: str) -> StreamSettings:
    """Returns the settings that a store has kept. Raises TypeError or ValueError if they cannot be read."""
    values = json.loads(text)
    closed = values.get("closed")
    return StreamSettings(**{**values, "closed": None if closed is None else tuple(closed)})

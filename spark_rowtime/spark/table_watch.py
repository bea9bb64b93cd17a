"""What a user declares of a table in whose commits nobody writes bounds: ``punctuate(..., watch={...})``."""

from collections.abc import Mapping
from typing import NamedTuple

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.arguments import to_choice
from spark_rowtime.types.timestamps import to_interval

ROWS, APPEND_TIME = "rows", "append-time"
"""Where bounds come from, in the words of a watch of a topic: the times of rows, or those of commits alone."""


class Declared(NamedTuple):
    """Intervals of Spark.

    ``lateness``: how far a row may lie below the largest one before it; None: the times of rows say nothing. ``delay``:
    how long after its time a row may be committed; None: the times of commits say nothing. Both None: nothing is
    declared, and the bounds are in the commits.
    """

    lateness: str | None
    delay: str | None


NOTHING = Declared(None, None)


def declared(watch: Mapping[str, str]) -> Declared:
    """What ``watch`` declares, with the senses and defaults that its names have for a topic.

    Raises:
        InvalidOptionError: A name or a value cannot be used.
    """
    _require_names(watch)
    lateness, delay = (_interval(watch.get(name), name) for name in ("lateness", "delay"))
    if to_choice(watch.get("bounds", ROWS), "bounds", ROWS, APPEND_TIME) == ROWS:
        return Declared(lateness or _interval("0 seconds", "lateness"), delay)
    _require_delay_alone(lateness, delay)
    return Declared(None, delay)


def _require_names(watch: Mapping[str, str]) -> None:
    others = watch.keys() - {"lateness", "delay", "bounds"}
    if others:
        raise InvalidOptionError(
            f"watch of a table has lateness, delay and bounds, and here {', '.join(sorted(others))}: the times are "
            "those of its statistics and of its commits. Of a topic, name the stream that gets the bounds.",
            option="watch",
        )


def _require_delay_alone(lateness: str | None, delay: str | None) -> None:
    if lateness is not None:
        raise InvalidOptionError(
            "lateness is for bounds='rows': with bounds='append-time' the times of commits count, and those of rows do "
            "not. Leave one of the two out.",
            option="lateness",
        )
    if delay is None:
        raise InvalidOptionError(
            "bounds='append-time' looks at no row of a table, so delay must say how long after its time a row may be "
            "committed: delay='5 minutes'.",
            option="delay",
        )


def _interval(value: str | None, name: str) -> str | None:
    micros = to_interval(value, name)
    return None if micros is None else f"{micros} microseconds"

"""What is meant by a target of ``rowtime drain`` that is none, such as a path."""

import re
from pathlib import Path

from spark_rowtime.drain.sink import PLUGINS
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.plugins import plugin_names

_CLASS = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")
_DOTTED = re.compile(r"([^\W\d][\w.]*)\.([A-Z]\w*)")
"""The name of a class with a dot before it, as Python writes it."""
_CALLED = {"deltalake": "delta", "delta-lake": "delta", "delta_lake": "delta"}
"""Formats, by what they are called instead."""
_PERIODS = "date=%Y-%m-%d/hour=%H"
_FORMS = (
    "delta:PATH, iceberg:CATALOG.NAMESPACE.TABLE, parquet:FOLDER/date=%Y-%m-%d/hour=%H, kafka://HOST:PORT/TOPIC, or "
    "module:Class for a consumer of your own"
)


def require_consumer_or(target: str) -> None:
    """Raises InvalidOptionError, which offers what is meant, unless ``target`` can name a class."""
    kind, _, place = target.partition(":")
    offered = _as_format(kind, place) or (None if _CLASS.fullmatch(target) else _as_place(kind, place, target))
    if offered is not None:
        raise InvalidOptionError(
            f"{target!r} is no target of a drain. {offered} A target is {_FORMS}.", option="target", value=target
        )


def _as_format(kind: str, place: str) -> str | None:
    """What is meant by the name of a format in another form."""
    meant = _CALLED.get(kind.lower(), kind.lower() if kind.lower() in plugin_names(PLUGINS) else None)
    if kind.lower() == "kafka":
        return f"Did you mean kafka://{place.lstrip('/') or 'HOST:PORT/TOPIC'}?"
    return None if meant is None else f"Did you mean {meant}:{place}?"


def _as_place(kind: str, place: str, target: str) -> str | None:
    """What is meant by a path, a URL or a stream."""
    if kind in ("memory", "postgresql", "postgres") or _is_stream(target):
        return "A stream is copied with `rowtime copy`, or with reader.drainTo(openSink(...)) in Python."
    if dotted := _DOTTED.fullmatch(target):
        return f"Did you mean {dotted[1]}:{dotted[2]}?"
    path = re.sub("^//(?=/)", "", place) if kind == "file" else target
    if (Path(path) / "_delta_log").is_dir():
        return f"Did you mean delta:{path}?"
    known = kind in ("file", "s3", "s3a", "gs", "abfss", "abfs", "hdfs") or "/" in target or "." in target
    if "%" in path:
        return f"Did you mean parquet:{path}?"
    if "://" in path:
        return f"Did you mean delta:{path}?"
    return f"Did you mean delta:{path}, or parquet:{path.rstrip('/')}/{_PERIODS}?" if known else None


def _is_stream(target: str) -> bool:
    return target.endswith(".rowtime") or all((Path(target) / name).exists() for name in ("catalog.db", "segments"))

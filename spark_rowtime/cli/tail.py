"""The command ``rowtime tail``."""

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click

from spark_rowtime.bounds.train import Train
from spark_rowtime.reader.reader import openReader
from spark_rowtime.types.schema import ROWTIME


@click.command()
@click.argument("stream")
@click.option("--follow", "-f", is_flag=True, help="Wait for more at the end of the stream.")
@click.option(
    "--order",
    type=click.Choice(["rowtime", "arrival"]),
    default="rowtime",
    show_default=True,
    help="rowtime: sorted, as the bound releases rows; arrival: in the order of commits.",
)
@click.option("--start", default="earliest", show_default=True, help="earliest, latest, or a time.")
@click.option("--json", "as_json", is_flag=True, help='Lines of JSON: {"row": {...}} or {"bound": "...", ...}.')
def tail(stream: str, follow: bool, order: str, start: str, as_json: bool) -> None:
    """Print rows and bounds as they arrive."""
    lines = _json_lines if as_json else _lines
    with openReader(stream, order=order, start=start, follow=follow) as reader:
        for train in reader:
            for line in lines(train):
                click.echo(line)


def _lines(train: Train) -> Iterator[str]:
    for row in train.rows.to_pylist():
        rest = (f"{name}={_dump(value)}" for name, value in row.items() if name != ROWTIME)
        yield f"{_plain(row[ROWTIME])}  {'  '.join(rest)}".rstrip()
    if train.bound is not None:
        yield click.style(f"-- {train.bound}", dim=True)


def _json_lines(train: Train) -> Iterator[str]:
    for row in train.rows.to_pylist():
        yield _dump({"row": row})
    if train.bound is not None:
        yield _dump({"bound": train.bound.time, "strict": train.bound.strict})


def _dump(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """Converts a value for JSON: times to ISO 8601, and values that JSON cannot represent to text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)

"""The commands ``rowtime copy``, ``rowtime rename``, ``rowtime delete`` and ``rowtime list``."""

import json
from pathlib import Path
from typing import Any

import click

from spark_rowtime.admin.copy import copyStream
from spark_rowtime.admin.delete import deleteStream
from spark_rowtime.admin.listing import ListedStream, listStreams
from spark_rowtime.admin.rename import renameStream
from spark_rowtime.cli.streams import aligned
from spark_rowtime.stream import describeStream
from spark_rowtime.types.schema import show_schema
from spark_rowtime.types.timestamps import show_micros


@click.command()
@click.argument("stream")
@click.argument("to")
def copy(stream: str, to: str) -> None:
    """Copy a stream, as it is at one moment, while others write to it."""
    copyStream(stream, to)
    info = describeStream(to)
    click.echo(f"{to}: {info.rows - info.removed} rows, up to event {info.seq} of {stream}")


@click.command()
@click.argument("stream")
@click.argument("to")
def rename(stream: str, to: str) -> None:
    """Give a stream another path. It is refused while somebody has the stream open."""
    renameStream(stream, to)


@click.command()
@click.argument("stream")
@click.option("--force", is_flag=True, help="Delete it although somebody uses it, or although it is damaged.")
def delete(stream: str, force: bool) -> None:
    """Delete a stream with all its rows. It is refused while somebody uses the stream, and says who."""
    deleteStream(stream, force=force)


@click.command(name="list")
@click.argument("folder")
@click.option("--json", "as_json", is_flag=True, help="A line of JSON for each stream.")
def list_streams(folder: str, as_json: bool) -> None:
    """List the streams in a folder, and how far each has come."""
    found = listStreams(folder)
    if as_json:
        for stream in found:
            click.echo(json.dumps(_facts(stream), ensure_ascii=False))
    elif found:
        for line in aligned([("stream", "rows", "rejected", "bound", "clock held by"), *map(_row, found)]):
            click.echo(line)


def _facts(stream: ListedStream) -> dict[str, Any]:
    info = stream.info
    if info is None:
        return {"path": stream.path, "error": str(stream.error)}
    return {
        "path": stream.path,
        "columns": show_schema(info.schema),
        "rows": info.rows,
        "removed": info.removed,
        "rejected": info.rejected,
        "bound": None if info.bound is None else show_micros(info.bound.floor),
        "seq": info.seq,
        "holder": info.holder,
        "producers": len(info.producers),
        "readers": len(info.readers),
    }


def _row(stream: ListedStream) -> tuple[str, ...]:
    info, name = stream.info, Path(stream.path).name
    if info is None:
        return name, "", "", "", str(stream.error)
    bound = show_micros(None if info.bound is None else info.bound.floor)
    return name, str(info.rows), str(info.rejected), bound, info.holder or "nobody"

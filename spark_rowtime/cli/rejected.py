"""The command ``rowtime rejected``."""

from typing import Any

import click

from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.cli.output import as_json
from spark_rowtime.store import open_store
from spark_rowtime.store.views import REJECTED_COLUMNS
from spark_rowtime.types.json_values import dump, plain
from spark_rowtime.types.schema import ROWTIME

_OWN_COLUMNS = len(REJECTED_COLUMNS)


@click.command()
@click.argument("stream")
@as_json
@click.option("-n", "newest", type=click.IntRange(min=1), help="Print only the newest N rows.")
def rejected(stream: str, as_json: bool, newest: int | None) -> None:
    """Print the rejected rows of a stream, oldest first, with the bound that each fell below and whose it was.

    With --json each row is a line.
    """
    with open_store(stream) as store:
        table, removed = store.rejected(), store.rejected_removed()
    for batch in table.slice(max(table.num_rows - newest, 0) if newest else 0).to_batches():
        own = batch.select(range(_OWN_COLUMNS)).to_pylist()
        rows = batch.select(range(_OWN_COLUMNS, batch.num_columns)).to_pylist()
        for entry, row in zip(own, rows, strict=True):
            click.echo(dump({**entry, "row": row}) if as_json else _line(entry, row))
    if removed:
        click.echo(f"{removed} older rejected row(s) are counted but no longer kept (retainRejected).", err=True)


def _line(entry: dict[str, Any], row: dict[str, Any]) -> str:
    relation = "late, below" if entry["reason"] == "late" else "too far ahead of"
    owner = BoundOrigin(entry["boundOf"], entry["boundBy"], entry["boundEvent"]) if entry["boundOf"] else None
    bound = f"{plain(entry['bound'])}" + (f", {owner}" if owner else "")
    rest = "  ".join(f"{name}={dump(value)}" for name, value in row.items() if name != ROWTIME)
    said = f"{entry['producer']!r} at {plain(entry['rejectedAt'])}: {relation} {bound}"
    return f"{plain(row[ROWTIME])}  {rest}\n    rejected from producer {said}"

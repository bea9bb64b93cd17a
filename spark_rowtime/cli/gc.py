"""rowtime gc."""

import click

from spark_rowtime.store import open_store
from spark_rowtime.timestamps import to_interval


@click.command()
@click.argument("stream")
@click.option("--age", help="What was committed so long ago may go: '7 days'.  [default: the stream's retainAge]")
@click.option(
    "--bytes",
    "size",
    type=click.IntRange(0),
    help="What lies beyond the newest so many bytes may go.  [default: the stream's retainBytes]",
)
@click.option("--forget", multiple=True, metavar="READER", help="First forget a reader that will not come back.")
@click.option("--force", is_flag=True, help="Remove also what registered readers and queries have still to read.")
def gc(stream: str, age: str | None, size: int | None, forget: tuple[str, ...], force: bool) -> None:
    """Remove old rows that nobody needs any more.

    What the bound has not released stays in any case, and what a query or a named reader has still to read,
    unless --force says otherwise; `rowtime describe` lists them.
    """
    store = open_store(stream)
    try:
        for reader in forget:
            store.forget(reader)
        done = store.gc(to_interval(age, "age"), size, force)
        click.echo(f"{stream}: removed {done.rows} rows, and {done.files} files of {done.size} bytes")
        if done.held:
            click.echo(f"More is old enough, but of what follows seq {store.horizon().seq}: {done.held}.")
    finally:
        store.close()

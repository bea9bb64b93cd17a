"""rowtime check."""

import click

from spark_rowtime.store import check_store


@click.command()
@click.argument("stream")
def check(stream: str) -> None:
    """Verify a stream: every checksum, and that all of it fits together. The exit code is 1 where it is damaged."""
    report = check_store(stream)
    for line in report.remarks:
        click.echo(f"remark    {line}")
    for line in report.damage:
        click.echo(f"damage    {line}")
    click.echo(
        f"readable  {report.readable_rows} of {report.rows} rows, {report.readable_trains} of {report.trains} trains"
    )
    click.echo(f"{stream} is {'damaged' if report.damage else 'whole'}")
    if report.damage:
        raise SystemExit(1)

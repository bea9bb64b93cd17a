"""The command ``rowtime check``."""

import click

from spark_rowtime.store import check_store


@click.command()
@click.argument("stream")
def check(stream: str) -> None:
    """Verify every checksum of a stream, and that all its parts are consistent. If not, the exit code is 1."""
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

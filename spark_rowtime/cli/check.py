"""The command ``rowtime check``."""

import click

from spark_rowtime.admin.progress import progress_bar
from spark_rowtime.cli.output import as_json, echo_json
from spark_rowtime.store import check_store


@click.command()
@click.argument("stream")
@as_json
def check(stream: str, as_json: bool) -> None:
    """Verify every checksum of a stream, and that all its parts are consistent. If not, the exit code is 1."""
    with progress_bar("checking") as advance:
        report = check_store(stream, advance)
    if as_json:
        echo_json(
            {
                "stream": stream,
                "whole": not report.damage,
                "damage": report.damage,
                "remarks": report.remarks,
                "rows": report.rows,
                "readableRows": report.readable_rows,
                "trains": report.trains,
                "readableTrains": report.readable_trains,
            }
        )
    else:
        for line in report.remarks:
            click.echo(f"remark    {line}")
        for line in report.damage:
            click.echo(f"damage    {line}")
        readable = f"{report.readable_rows} of {report.rows} rows, {report.readable_trains} of {report.trains} trains"
        click.echo(f"readable  {readable}")
        click.echo(f"{stream} is {'damaged' if report.damage else 'whole'}")
    if report.damage:
        raise SystemExit(1)

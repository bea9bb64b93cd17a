"""The command ``rowtime adopt``."""

import click

from spark_rowtime.admin.adopt import adoptLocation


@click.command()
@click.argument("stream")
def adopt(stream: str) -> None:
    """Make a stream's database the owner of its objects.

    For a database to which the stream has moved for good.

    A stream with a location keeps large rows as objects, which belong to the database that created it. A restored
    backup, and a standby that has taken over, leave them alone until they adopt them; the former owner is refused then.
    """
    adoptLocation(stream)
    click.echo(f"{stream}: this database owns the objects now")

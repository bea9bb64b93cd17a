"""The command ``rowtime serve``."""

import click

from spark_rowtime.cli.output import say
from spark_rowtime.types.extras import import_extra

_NEEDED = ("starlette", "uvicorn", "prometheus_client")
_LOCAL = ("127.0.0.1", "::1", "localhost")
PORT = 8710
"""The port unless another is given."""


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: any that is free.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on; 0.0.0.0: all.")
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    help="A host name by which browsers may call the server; repeat it for each. Addresses and localhost always may.",
)
def serve(paths: tuple[str, ...], port: int, host: str, names: tuple[str, ...]) -> None:
    """Show streams on a web page, live: who holds the clock, what is late, which hours are complete.

    Each PATH is a stream, a folder or a database of streams, or a table: delta:PATH,
    iceberg:CATALOG.NAMESPACE.TABLE. /api has the state as JSON, /metrics has it for Prometheus. Nothing can be changed
    there. Ctrl-C ends it. Needs the pip extra serve.
    """
    for module in _NEEDED:
        import_extra(module, "serve", "rowtime serve")
    from spark_rowtime.serve.server import serve as serve_until_ended  # noqa: PLC0415  (needs the extra)

    if host not in _LOCAL:
        say(f"warning   everybody who can reach {host}, port {port} can read these streams' state.", err=True)
    serve_until_ended(paths, host, port, names, lambda address: say(f"serving at {address}"))

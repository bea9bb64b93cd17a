"""The command ``rowtime watch``, which derives bounds from a topic of Kafka."""

from typing import Any

import click

from spark_rowtime.adapter.adapter import RESTART_SECONDS, host, restart_seconds
from spark_rowtime.adapter.search_path import add_current_folder
from spark_rowtime.cli.argument_texts import client_settings, config_option, settings_option
from spark_rowtime.cli.host import terminable
from spark_rowtime.cli.intervals import INTERVAL
from spark_rowtime.cli.output import log_to_stderr
from spark_rowtime.kafka.address import topic_address
from spark_rowtime.kafka.client import library
from spark_rowtime.kafka.records import FORMATS
from spark_rowtime.kafka.registry import REGISTRY
from spark_rowtime.kafka.watch import EVERY, KafkaWatch, create_watched


@click.command()
@click.argument("topic", metavar="kafka://HOST:PORT/TOPIC")
@click.argument("bounds_stream", metavar="BOUNDS")
@click.option(
    "--bounds",
    default="rows",
    show_default=True,
    metavar="append-time|rows|resolved|ticdc|MODULE:FUNCTION",
    help="Where bounds come from.",
)
@click.option(
    "--rowtime",
    help="The field with the time, or kafka.timestamp.  [default: rowtime; with append-time kafka.timestamp]",
)
@click.option("--time-unit", help="The unit of the field: s, ms, us, ns, hlc or tso.  [default: an ISO 8601 text]")
@click.option("--tz", help="The time zone of texts that name none, such as Europe/Berlin.  [default: UTC]")
@click.option("--decoder", type=click.Choice(FORMATS), default="json", show_default=True)
@click.option(
    "--lateness",
    type=INTERVAL,
    help="How far a message may lie below the largest one of its partition.  [default: 0 s]",
)
@click.option(
    "--delay",
    type=INTERVAL,
    help="How long after its time a message may be seen in the topic. It lets a partition go on where nothing comes.",
)
@click.option(
    "--every", type=INTERVAL, default=EVERY, show_default=True, help="A partition sends a bound at most so often."
)
@click.option("--start", type=click.Choice(["earliest", "latest"]), default="earliest", show_default=True)
@click.option("--lost", type=click.Choice(["fail", "skip"]), default="fail", show_default=True)
@click.option("--until-end", is_flag=True, help="End once all is followed that the topic has now.")
@click.option("--producer", help="The name of this host, where several share the partitions.")
@config_option
@settings_option
@click.option("--restarts", type=click.IntRange(0, 1000), default=len(RESTART_SECONDS), show_default=True)
def watch(
    *,
    topic: str,
    bounds_stream: str,
    producer: str | None,
    config: str | None,
    assignments: tuple[str, ...],
    restarts: int,
    time_unit: str | None,
    until_end: bool,
    **more: Any,
) -> None:
    """Derive bounds with offsets from a topic of Kafka, for a query that reads the topic itself.

    The messages stay in the topic. BOUNDS is a stream, which is created if there is none. Each partition is a producer,
    and its offset the checkpoint; several hosts share the partitions.
    """
    log_to_stderr()
    address = topic_address(topic)
    given = {name: value for name, value in more.items() if value is not None}
    settings = client_settings(config, assignments)
    given |= {name: settings.pop(name) for name in list(settings) if name.startswith(REGISTRY)}
    given |= {"timeUnit": time_unit, "untilEnd": until_end, "options": settings}
    arguments = {"servers": address.servers, "topics": address.topic, **given}
    add_current_folder()  # a function of --bounds may be there
    KafkaWatch(**arguments)  # an argument that cannot be used creates no stream
    library()  # without the extra, too
    create_watched(bounds_stream)
    with terminable():
        host(KafkaWatch, bounds_stream, arguments=arguments, producer=producer, delays=restart_seconds(restarts))

"""The forms of an adapter: a class that owns a feed, with one producer or with several."""

from typing import Any, Protocol

from spark_rowtime.adapter.sinks import Sinks
from spark_rowtime.producer.rowsink import RowSink


class Adapter(Protocol):
    """The form of a class that sends a feed into a stream as one producer. It needs no base class.

    The host instantiates the class once per start, with the arguments that were given to it as keywords of its
    constructor (``rowtime run --set key=value``). A class whose rows are not in order declares this in
    ``sinkOptions``, an optional attribute of the class or the instance: a dict of keywords for ``openSink``.

    Example:
        >>> import spark_rowtime as rt
        >>> class Ticks:
        ...     schema = "rowtime TIMESTAMP NOT NULL, ticker STRING"
        ...     sinkOptions = {"lateness": "1 minute"}
        ...     def __init__(self, ticker: str = "IBM") -> None:
        ...         self.ticker = ticker
        ...     def run(self, sink: rt.RowSink) -> None:
        ...         sink.sendRow(("2026-01-05T14:30:00Z", self.ticker))
        >>> rt.createStream("memory://docs-adapter", Ticks.schema)
        >>> with rt.openSink("memory://docs-adapter", producer="ticks", **Ticks.sinkOptions) as sink:
        ...     Ticks().run(sink)  # what a host does, without its restarts
        >>> rt.runAdapter(Ticks, "memory://docs-adapter", producer="more", arguments={"ticker": "AAPL"})
        >>> rt.describeStream("memory://docs-adapter").rows
        2
    """

    @property
    def schema(self) -> Any:
        """The stream's schema, as for ``createStream``: an attribute of the class. None: the schema of each stream."""

    def run(self, sink: RowSink) -> None:
        """Sends rows and bounds until the feed ends; then it returns, and the producer leaves the stream.

        The host calls it once per instance, in its main thread. After a failure a new instance starts. It resumes
        at ``sink.checkpoint``, the last checkpoint that its predecessor passed to ``flush``.

        After the first ``flush(checkpoint=...)``, rows become visible only with the next such call, so that no row is
        repeated or lost whenever the process dies. Before that call rows become visible without ``flush``. An adapter
        that resumes therefore passes its starting point to ``flush`` before its first row.

        Args:
            sink: The sink that takes the rows and bounds; its ``checkpoint`` is None at the very first start.

        Raises:
            Exception: A failure of the feed; the host restarts the adapter, except after an error of its program,
                such as a TypeError.
        """


class MultiAdapter(Protocol):
    """The form of a class that sends a feed into a stream as several producers. It needs no base class.

    It differs from an ``Adapter`` in one method: ``runProducers`` takes the place of ``run``. Each producer that it
    opens has its own bound, checkpoint and lease, and can be taken over by itself.

    Example:
        >>> import spark_rowtime as rt
        >>> class Shops:
        ...     schema = "rowtime TIMESTAMP NOT NULL, units INT"
        ...     def runProducers(self, sinks: rt.Sinks) -> None:
        ...         berlin, oslo = sinks.open("Berlin"), sinks.open("Oslo")  # both, before the first row
        ...         berlin.sendRow(("2026-01-05T14:30:00Z", 1))
        ...         oslo.sendRow(("2026-01-05T14:10:00Z", 2))
        ...         print(rt.describeStream("memory://docs-multiadapter").holder)
        >>> rt.runAdapter(Shops, "memory://docs-multiadapter", create=True)
        Oslo
        >>> [producer.name for producer in rt.describeStream("memory://docs-multiadapter").producers]
        ['Berlin', 'Oslo']
    """

    @property
    def schema(self) -> Any:
        """The stream's schema, as for ``createStream``: an attribute of the class. None: the schema of each stream."""

    def runProducers(self, sinks: Sinks) -> None:
        """Opens producers, and sends their rows and bounds until the feed ends.

        When it returns, all producers that are still open leave the stream. After a failure all of them stay
        attached, and a new instance starts, which opens them again and resumes each at its own ``checkpoint``.

        A stream waits only for producers that are attached, and for those that ``createStream(producers=...)`` named.
        So the adapter opens all that it knows of before it sends the first row; the rows of one that is opened later
        are late below the stream's bound.

        Args:
            sinks: Opens a producer by its name; see ``Sinks``.

        Raises:
            Exception: A failure of the feed; the host restarts the adapter, except after an error of its program.
        """

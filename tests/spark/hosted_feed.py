"""An adapter that the queries of the tests may host, and one that they may not."""

from typing import Any


class Feed:
    """Three rows and a bound."""

    schema = "rowtime TIMESTAMP NOT NULL, n BIGINT"

    def run(self, sink: Any) -> None:
        for n in range(int(sink.checkpoint or 0), 3):
            sink.sendRow((f"2006-09-11T10:0{n}:00Z", n))
            sink.flush(checkpoint=str(n + 1))
        sink.sendRowtimeBound("2006-09-11T11:00:00Z")


class Other(Feed):
    """The same, but it is not in the list of allowed adapters."""

"""An adapter that the queries of the tests may host, and one that they may not."""

import threading
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


class Shops:
    """Two producers; sends the rows up to ``lastRow`` from each, and then waits."""

    schema = "rowtime TIMESTAMP NOT NULL, n BIGINT"

    def __init__(self, password: str, lastRow: int) -> None:
        self.size, self.last = len(password), lastRow

    def runProducers(self, sinks: Any) -> None:
        shops = [sinks.open("Berlin"), sinks.open("Oslo")]
        for shop in shops:
            shop.flush(checkpoint=shop.checkpoint or "0")
        for first, shop in zip((0, 100), shops, strict=True):
            for n in range(int(shop.checkpoint), self.last):
                shop.sendRow((f"2006-09-11T10:0{n}:30Z", first + n))
                shop.flush(checkpoint=str(n + 1))
            shop.sendRowtimeBound(f"2006-09-11T10:0{self.last}:{self.size}Z")
            shop.flush()
        threading.Event().wait()

"""A feed of meter readings as an adapter class. examples/03_adapter.py hosts it in three ways."""

from collections.abc import Iterator

import spark_rowtime as rt

Reading = tuple[str, str, float]

READINGS: list[Reading] = [
    ("2006-09-11T10:00:00Z", "north", 1.5),
    ("2006-09-11T10:10:00Z", "south", 0.5),
    ("2006-09-11T10:20:00Z", "north", 2.0),
    ("2006-09-11T10:30:00Z", "south", 0.25),
    ("2006-09-11T10:40:00Z", "north", 1.0),
    ("2006-09-11T10:50:00Z", "south", 0.75),
]


class MeterFeed:
    """Sends the readings in order. The checkpoint is the number of readings that were sent."""

    schema = "rowtime TIMESTAMP NOT NULL, meter STRING, kwh DOUBLE"

    def run(self, sink: rt.RowSink) -> None:
        """Resumes after the checkpoint, commits every second reading, and promises the whole hour in the end."""
        sink.flush(checkpoint=sink.checkpoint or "0")
        for number, (time, meter, kwh) in self.readings(start=int(sink.checkpoint)):
            sink.sendRow({"rowtime": time, "meter": meter, "kwh": kwh})
            if number % 2 == 0:
                sink.flush(checkpoint=str(number))
        sink.sendRowtimeBound("2006-09-11T11:00:00Z")
        sink.flush(checkpoint=str(len(READINGS)))

    def readings(self, start: int) -> Iterator[tuple[int, Reading]]:
        """The readings after the first ``start`` ones, each with its number. A real feed reads a device here."""
        yield from enumerate(READINGS[start:], start=start + 1)

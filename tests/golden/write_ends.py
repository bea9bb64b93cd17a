"""Writes the golden stream of expected and complete producers: python -m tests.golden.write_ends. Never changed later.

``tests/golden/ends-format-3`` has the stream and, in ``expected.json``, all that anybody could see of it. Every later
version must see the same, and go on: one producer is still expected, one was lost and is closed, one is complete.
"""

import spark_rowtime as rt
from tests.golden.write import HERE, keep
from tests.streams import opened, send

FOLDER = HERE / "ends-format-3"
SCHEMA = "rowtime TIMESTAMP NOT NULL, who STRING"


def write(path: str) -> str:
    """The stream; gives the position of a reader that has read nothing."""
    rt.createStream(path, SCHEMA, producers=["first", "lost", "never", "to come"])
    with rt.openReader(path, order="arrival") as reader:
        position = reader.position
    sink = opened(path, "first", lease=None)
    send(sink, ("10:00", "first"), ("10:30", "first"))
    sink.close(complete=True)
    lost = opened(path, "lost", lease=None, rowsImplyBounds=False)
    send(lost, ("11:00", "lost"), ("10:40", "lost"), promise="10:20")
    rt.closeProducer(path, "lost")
    lost.abandon()
    rt.detachProducer(path, "never")
    return position


def main() -> None:
    keep(FOLDER, write)


if __name__ == "__main__":
    main()

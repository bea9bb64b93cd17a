"""A writer whose trains have valid checksums, and contents that would end Spark's process, or fill its memory."""

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from tests.store.crafted import LIES, lying_stream
from tests.streams import Pipe

FIRST = ["a text that ends far away", "a text in a list", "more rows than bytes", "compressed"]


def cases() -> list[object]:
    """In ``make test``, one of each kind."""
    return [pytest.param(name, marks=() if name in FIRST else pytest.mark.long) for name in LIES]


@pytest.mark.each
@pytest.mark.parametrize("name", cases())
def test_a_query_over_trains_that_lie_fails(pipe: Pipe, tmp_path: Path, name: str) -> None:
    """With an error that names the train; the process lives, and runs the next case."""
    lying_stream(str(tmp_path / "s.rowtime"), name)
    frame = pipe.read("s", order="arrival")
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(StreamingQueryException, match=r"StoreCorruptError: .*cannot be read"):
        query.processAllAvailable()
    assert pipe.spark.range(3).count() == 3

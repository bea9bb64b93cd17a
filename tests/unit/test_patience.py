"""What the source does between two triggers of Spark: it waits a moment for news, but not for a batch's end."""

from pyspark.sql.streaming.datasource import ReadAllAvailable
from unit_support import new_sink, new_stream, rows

from spark_rowtime.spark.options import READ, Options
from spark_rowtime.spark.source import PATIENCE, RowtimeStreamReader


def test_news_that_comes_while_it_waits_is_in_the_answer() -> None:
    path = new_stream()
    sink = new_sink(path, "feed")
    source = RowtimeStreamReader(Options({"path": path, "bounds": "ignore"}, READ))
    start, waits = source.initialOffset(), []

    def wait(seq: int, timeout: float) -> bool:
        waits.append((seq, timeout))
        if len(waits) == 2:
            sink.sendRows(rows("10:00"))
            sink.flush()
        return len(waits) == 2

    source._store.wait = wait
    nothing = source.latestOffset(start, ReadAllAvailable())
    assert (nothing, len(waits)) == (start, 1)
    seq = source._store.head().seq
    assert source.latestOffset(start, ReadAllAvailable())["seq"] == source._store.head().seq
    assert waits[1] == (seq, PATIENCE)
    source.prepareForTriggerAvailableNow()
    source.latestOffset(source.latestOffset(start, ReadAllAvailable()), ReadAllAvailable())
    assert len(waits) == 2, "AvailableNow knows its end"

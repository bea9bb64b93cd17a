"""A condition above windows that asks a table: Spark reads a Delta table again in each batch."""

from pathlib import Path
from typing import Any

from tests.spark.observed_query import Observed
from tests.streams import Pipe, opened, send


def test_a_window_is_judged_whole_by_what_a_table_says_at_its_end(spark: Any, tmp_path: Path) -> None:
    """Moved to below the windows, it would leave the rows of each batch out by what the table said then."""
    pipe = Pipe(spark, tmp_path)
    orders = opened(pipe.create("orders", "k INT"), "p")
    table = f"delta.`{tmp_path / 'limits'}`"
    spark.sql(f"CREATE TABLE {table} (least INT) USING delta")
    spark.sql(f"INSERT INTO {table} VALUES (5)")
    pipe.read("orders").createOrReplaceTempView("orders")
    counts = spark.sql(
        "SELECT k, count(*) AS n FROM orders GROUP BY window(rowtime, '1 hour'), k "
        f"HAVING k >= (SELECT min(least) FROM {table})"
    )
    with Observed(counts, tmp_path) as query:
        send(orders, ("10:00", 3), ("10:00", 7))
        assert query.step() == []
        spark.sql(f"INSERT INTO {table} VALUES (1)")
        send(orders, ("10:01", 3), ("10:01", 7), promise="11:00")
        assert query.step() == [(3, 2), (7, 2)]

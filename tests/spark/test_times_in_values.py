"""Times inside structs: which of them a watermark follows, and which bound they have."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException

from tests.spark.observed_query import Observed, clock
from tests.streams import Pipe, opened, send

STRUCTS = "(SELECT struct(rowtime, k) AS s, k FROM a UNION ALL SELECT struct({second}, k) AS s, k FROM b)"
EARLIER = STRUCTS.format(second="rowtime - INTERVAL 1 HOUR AS rowtime")
SAME = STRUCTS.format(second="rowtime AS t")
DEEP = "SELECT struct(k, struct({time} AS t, k) AS inner) AS outer FROM {stream}"
GROUPED = (
    "(SELECT s, count(*) AS n FROM (SELECT rowtime, struct(rowtime, k) AS s FROM a)"
    " GROUP BY window(rowtime, '1 hour'), s)"
)
SWAPPED = (
    "(SELECT struct(rowtime AS start, rowtime - INTERVAL 1 HOUR AS end) AS s FROM a"
    " UNION ALL SELECT struct(rowtime - INTERVAL 1 HOUR AS end, rowtime AS start) AS s FROM b)"
)

RIGHT = {
    "groups of a field": f"SELECT s.rowtime, count(*) FROM {EARLIER} GROUP BY s.rowtime",
    "windows of a field": f"SELECT window(s.rowtime, '10 minutes') AS w, count(*) FROM {EARLIER} GROUP BY 1",
    "a field with another name in each part": (
        f"SELECT rowtime, count(*) FROM (SELECT s.rowtime FROM {SAME}) GROUP BY rowtime"
    ),
    "a field two levels deep": (
        "SELECT t, count(*) FROM (SELECT outer.inner.t FROM ("
        f"{DEEP.format(time='rowtime', stream='a')} UNION ALL {DEEP.format(time='rowtime', stream='b')}))"
        " GROUP BY t"
    ),
    "windows of a field two levels deep": (
        "SELECT window(outer.inner.t, '10 minutes').end AS t, count(*) FROM ("
        f"{DEEP.format(time='rowtime', stream='a')} UNION ALL "
        f"{DEEP.format(time='rowtime - INTERVAL 1 HOUR', stream='b')}) GROUP BY window(outer.inner.t, '10 minutes')"
    ),
    "a field of a join's rows": f"SELECT l.s.rowtime AS t, l.k FROM {EARLIER} l JOIN (SELECT k FROM b) r ON l.k = r.k",
    "fields by position": f"SELECT s.start AS rowtime FROM {SWAPPED}",
}


@pytest.fixture
def sinks(pipe: Pipe) -> list[Any]:
    """Of the streams a and b, which are views of these names, too."""
    for name in "ab":
        pipe.create(name, "k INT")
        pipe.read(name).createOrReplaceTempView(name)
    return [opened(pipe.path(name), "p") for name in "ab"]


@pytest.mark.parametrize("case", RIGHT)
def test_the_same_as_in_a_batch(pipe: Pipe, tmp_path: Path, sinks: list[Any], case: str) -> None:
    with Observed(pipe.spark.sql(RIGHT[case]), tmp_path) as query:
        for time in ("10:00", "10:25", "10:50", "11:20"):
            for k, sink in enumerate(sinks):
                send(sink, (time, k), (time, 2), promise=time)
            query.step()
        for sink in sinks:
            send(sink, promise="13:00")
        query.step()
    for name in "ab":
        pipe.spark.read.format("rowtime").load(pipe.path(name)).createOrReplaceTempView(name)
    batch = Counter(clock(tuple(row)) for row in pipe.spark.sql(RIGHT[case]).collect())
    assert Counter(row for rows in query.batches.values() for row in rows) == batch
    assert below_what_was_promised(query) == []


def below_what_was_promised(query: Observed) -> list[Any]:
    column = query.frame.columns[0]
    floors = {batch: said.get(column, "") for batch, said in query.promises.items()}
    return [
        (row, floor)
        for batch, floor in floors.items()
        for later in query.batches
        for row in query.batches[later]
        if later > batch and isinstance(row[0], str) and row[0] < floor
    ]


REFUSED = {
    "a part that is earlier": f"SELECT count(*) FROM (SELECT s.rowtime FROM {EARLIER}) GROUP BY rowtime",
    "windows of a part that is earlier": (
        f"SELECT count(*) FROM (SELECT s.rowtime FROM {EARLIER}) GROUP BY window(rowtime, '1 hour')"
    ),
    "distinct fields": f"SELECT DISTINCT s.rowtime, k FROM {EARLIER}",
    "a part two levels deep that is earlier": (
        "SELECT count(*) FROM (SELECT outer.inner.t FROM ("
        f"{DEEP.format(time='rowtime', stream='a')} UNION ALL "
        f"{DEEP.format(time='rowtime - INTERVAL 1 HOUR', stream='b')})) GROUP BY t"
    ),
    "a left join by a field": (
        f"SELECT l.t FROM (SELECT s.rowtime AS t, k FROM {EARLIER}) l LEFT JOIN b"
        " ON l.k = b.k AND b.rowtime BETWEEN l.t AND l.t + INTERVAL 5 MINUTES"
    ),
    "the key of a group": (
        f"SELECT count(*) FROM (SELECT s.rowtime AS t FROM {GROUPED}) WHERE t IS NOT NULL GROUP BY t"
    ),
    "a distinct struct": (
        "SELECT count(*) FROM (SELECT s.rowtime AS t FROM (SELECT DISTINCT w, s FROM ("
        "SELECT window(rowtime, '1 hour') AS w, struct(rowtime, k) AS s FROM a))) WHERE t IS NOT NULL GROUP BY t"
    ),
    "a value of a map": (
        "SELECT count(*) FROM (SELECT m['x'].rowtime AS t FROM ("
        "SELECT map('x', struct(rowtime, k)) AS m FROM a)) WHERE t IS NOT NULL GROUP BY t"
    ),
    "beside a stream of files": (
        "SELECT count(*) FROM (SELECT s.rowtime FROM (SELECT struct(rowtime, k) AS s FROM a"
        " UNION ALL SELECT struct(rowtime, k) FROM files)) WHERE rowtime IS NOT NULL GROUP BY rowtime"
    ),
    "a recursion": (
        "WITH RECURSIVE r (t, n) AS (SELECT rowtime, 1 FROM a"
        " UNION ALL SELECT t - INTERVAL 1 HOUR, n + 1 FROM r WHERE n < 3)"
        " SELECT count(*) FROM r WHERE t IS NOT NULL GROUP BY t"
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_where_a_part_has_no_watermark(pipe: Pipe, tmp_path: Path, sinks: list[Any], case: str) -> None:
    del sinks
    (tmp_path / "files").mkdir()
    files = pipe.spark.readStream.schema("rowtime TIMESTAMP, k INT").json(str(tmp_path / "files"))
    files.createOrReplaceTempView("files")
    with (
        pytest.raises(IllegalArgumentException, match="no watermark is known for this time"),
        Observed(pipe.spark.sql(REFUSED[case]), tmp_path),
    ):
        pass


def test_refused_in_update_mode_too(pipe: Pipe, tmp_path: Path, sinks: list[Any]) -> None:
    """Spark makes the group a column, with the mark of the field."""
    del sinks
    mapped = EARLIER.replace("struct(", "map('x', struct(").replace(", k) AS s", ", k)) AS s")
    frame = pipe.spark.sql(f"SELECT count(*) FROM {mapped} GROUP BY s['x'].rowtime")
    with (
        pytest.raises(IllegalArgumentException, match="no watermark is known for this time"),
        Observed(frame, tmp_path, "update"),
    ):
        pass


def test_the_users_watermark_on_a_field_is_taken(pipe: Pipe, tmp_path: Path, sinks: list[Any]) -> None:
    rows = pipe.spark.sql(f"SELECT s.rowtime FROM {EARLIER}").withWatermark("rowtime", "0 seconds")
    with Observed(rows.groupBy("rowtime").count(), tmp_path) as query:
        send(sinks[0], ("10:00", 1), promise="10:30")
        send(sinks[1], ("10:20", 1), promise="10:30")
        assert query.step() == [("09:20", 1)]
        send(sinks[0], promise="11:30")
        send(sinks[1], promise="11:30")
        assert query.step() == [("10:00", 1)]

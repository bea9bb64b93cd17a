"""kill -9 of the queries of docs/howto/corrections.md, Python and JVM, around the commit of a correction."""

import os
import signal
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import spark_rowtime as rt
from tests.crash.correcting import AFTER, BEFORE
from tests.crash.drivers import ROOT
from tests.spark.test_corrections import COLUMNS
from tests.streams import opened, send

pytestmark = [pytest.mark.night, pytest.mark.timeout(600)]  # four drivers


def run(folder: Path, *point: str) -> int:
    """How a driver ends."""
    command = [sys.executable, "-m", "tests.crash.correcting", str(folder), *point]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    with (folder / "driver.log").open("ab") as log:
        return subprocess.run(
            command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True, timeout=500, check=False
        ).returncode


def hours(folder: Path) -> dict[tuple[int, str], tuple[int, datetime | None]]:
    rows = DeltaTable(str(folder / "hourly")).to_pyarrow_table().to_pylist()
    found = {(row["hour"].hour, row["product"]): (row["units"], row["corrected_at"]) for row in rows}
    assert len(found) == len(rows), "no hour twice"
    return found


def test_a_correction_is_made_once_and_says_when(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.rowtime")
    rt.createStream(path, f"rowtime TIMESTAMP NOT NULL, {COLUMNS}")
    sent: Counter[tuple[int, str]] = Counter()

    def more(sink: Any, *rows: tuple[str, str, int], promise: str | None = None) -> None:
        send(sink, *rows, promise=promise)
        sent.update({(int(clock.partition(":")[0]), product): units for clock, product, units in rows})

    with opened(path, onLate="reject") as sink:
        more(sink, ("9:10", "A", 1), ("10:20", "B", 3), ("10:30", "C", 5), promise="11:00")
        assert run(tmp_path) == 0
        first = hours(tmp_path)
        assert first == {hour: (units, None) for hour, units in sent.items()}
        more(sink, ("9:30", "A", 10), ("9:40", "B", 20))
        assert run(tmp_path, BEFORE) == -signal.SIGKILL
        assert hours(tmp_path) == first
        started = datetime.now(UTC)
        assert run(tmp_path, AFTER) == -signal.SIGKILL
        corrected, ended = hours(tmp_path), datetime.now(UTC)
        assert {hour: units for hour, (units, _) in corrected.items()} == sent
        changed = {hour: at for hour, (_, at) in corrected.items() if at is not None}
        assert changed.keys() == {(9, "A"), (9, "B")}
        assert all(started <= at <= ended for at in changed.values())
        more(sink, ("10:10", "C", 40))
        assert run(tmp_path) == 0
    last = hours(tmp_path)
    assert {hour: units for hour, (units, _) in last.items()} == sent
    assert {hour: row for hour, row in last.items() if hour != (10, "C")} == {
        hour: row for hour, row in corrected.items() if hour != (10, "C")
    }, "the batch was run again, and changed nothing"
    assert (last[10, "C"][1] or started) > ended

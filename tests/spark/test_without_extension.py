"""A session without the jar and the extension: what is refused, and the windows of bounds=markers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest

import spark_rowtime as rt
from tests.spark.restarted import CHANGED
from tests.spark.without_extension import TOO_SLOW
from tests.streams import drained, opened, send

pytestmark = [pytest.mark.smoke, pytest.mark.each]

ATTEMPTS = 3
HOURS = [("9:10", 1), ("9:40", 2), ("10:05", 3), ("10:30", 4), ("11:00", 5), ("11:59", 6)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the program has run, in a process of its own.

    It runs again if a worker took longer than the ten seconds that Spark gives it. The extension starts another worker.
    """
    for _ in range(ATTEMPTS):
        folder = tmp_path_factory.mktemp("without_extension")
        ran = _ran(folder)
        if TOO_SLOW not in ran.stderr:
            break
    assert ran.returncode == 0, ran.stderr
    return folder


def _ran(folder: Path) -> subprocess.CompletedProcess[str]:
    path = str(folder / "s")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, x INT")
    send(opened(path, "feed"), *HOURS, promise="12:00")
    program = [sys.executable, "-m", "tests.spark.without_extension", str(folder)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(program, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def said(folder: Path) -> Any:
    return json.loads((folder / "said.json").read_text())


def rows_of(folder: Path, name: str) -> list[tuple[Any, ...]]:
    return sorted(drained(rt.openReader(str(folder / name), order="arrival")))


def test_bounds_are_needed_or_ignored(folder: Path, said: Any) -> None:
    assert said["batch"] == len(HOURS), "batch reads need no extension"
    for when in ("configure", "configure after stop"):
        assert "Start a new process" in said[when]
    for part in ("ShimMissingError", "spark_rowtime.configure", "sparkrowtime.RowtimeExtensions", "'ignore'"):
        assert part in said["require"]
    assert "by the bounds of a topic or a table. Build the session with" in said["punctuate"]
    assert rows_of(folder, "hours") == [("09:00", 2), ("10:00", 2)], "plain Spark holds the last hour back"
    assert rt.openReader(str(folder / "hours"), order="arrival").getRowtimeBound() is None


def test_the_last_window_is_closed_by_a_marker(folder: Path) -> None:
    assert rows_of(folder, "marked hours") == [("09:00", 1), ("10:00", 2), ("11:00", 2)]


def test_a_session_has_the_row_at_its_end(folder: Path) -> None:
    assert rows_of(folder, "marked sessions") == [("10:00", 2)]


def test_a_quiet_stream_has_its_bound_in_the_next_run_too(folder: Path) -> None:
    assert rows_of(folder, "marked union") == [("10:00", 1), ("11:00", 1)]


def test_duplicates_are_found_in_later_batches(folder: Path) -> None:
    assert len(rows_of(folder, "marked distinct")) == 1


@pytest.mark.parametrize("options", CHANGED)
def test_with_other_options_a_query_goes_on_where_it_was_or_is_refused(said: Any, options: str) -> None:
    error, written = said["restarted"][options]
    assert written == [1, 2, 3, 4, 5]
    if error and options != "hold of arrival":
        assert ("nothing" in options, pyspark.__version__ < "4.2") == (False, True)
        assert "the newest file of the folder offsets" in error


def test_a_query_that_begins_at_latest_goes_on_after_its_first_batch_has_failed(said: Any) -> None:
    assert said["latest"] == [2, 3]


REFUSED = {
    "time": "without watermark",
    "another window": "without watermark",
    "a session beside": "without watermark",
    "no window": "is no window of rowtime",
    "a moved time": "is no window of rowtime",
    "the name": "The stream has a column 'X', too",
    "without markers": "not those of bounds=markers",
    "order": "Leave order out",
    "operator": "This operator needs Spark's extension (spark_rowtime.configure)",
    "view": "leave out view",
    "batch": "a batch has no watermark",
}


@pytest.mark.parametrize("query", REFUSED)
def test_all_but_windows_is_refused(said: Any, query: str) -> None:
    assert said["refused"].keys() == REFUSED.keys()
    assert REFUSED[query] in said["refused"][query]

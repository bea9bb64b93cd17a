"""pytest fixtures, which pytest finds by the entry point of this package."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_rowtime.testing.stream import RowtimeTestStream


@pytest.fixture(scope="session")
def rowtime_spark() -> "Iterator[SparkSession]":
    """A local Spark session with the extension, without the web UI, in UTC, for all tests of the run.

    A project that has a session of its own overrides this fixture by one of the same name in its conftest.py.
    """
    from spark_rowtime.spark.session import configure  # noqa: PLC0415  (the plugin is loaded in every run of pytest)

    # isort: split
    from pyspark.sql import SparkSession  # noqa: PLC0415  (after the module that says which PySpark is needed)

    builder = SparkSession.builder.master("local[2]").appName("rowtime tests")
    builder = builder.config("spark.ui.enabled", False).config("spark.sql.session.timeZone", "UTC")
    session = configure(builder).getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def rowtime_test(rowtime_spark: "SparkSession", tmp_path: Path) -> "Iterator[Callable[..., RowtimeTestStream]]":
    """Makes a ``RowtimeTestStream`` in the test's folder with ``rowtime_spark``, and closes it after the test.

    Its arguments are those of ``RowtimeTestStream`` without ``spark`` and ``folder``.
    """
    from spark_rowtime.testing.stream import RowtimeTestStream  # noqa: PLC0415

    made: list[RowtimeTestStream] = []

    def make(pipeline: "Callable[..., DataFrame]", schema: Any, **options: Any) -> "RowtimeTestStream":
        folder = tmp_path / f"rowtime-{len(made)}"
        folder.mkdir()
        made.append(RowtimeTestStream(pipeline, schema, spark=rowtime_spark, folder=folder, **options))
        return made[-1]

    yield make
    for test in made:
        test.close()

"""A Spark session with Delta Lake. Where Delta has no jar for the PySpark that is installed, the tests are skipped."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tables.jars import MissingJarsError, table_jars
from tests.tables.spark_reader import DELTA


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The session of the tests, with Delta. It needs a process without another session."""
    from tests.sparksession import make_session

    try:
        jars = table_jars("delta")
    except MissingJarsError as missing:
        pytest.skip(str(missing))
    session = make_session(**DELTA, **{"spark.jars": jars})
    yield session
    session.stop()


@pytest.fixture
def orders(spark: Any, tmp_path: Path) -> Any:
    from tests.lakehouse.orders import Orders

    return Orders(spark, tmp_path)

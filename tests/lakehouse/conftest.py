"""A Spark session with Delta Lake, and with Iceberg where it has a jar for this PySpark. Without Delta no test runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tables.jars import MissingJarsError, table_jars
from tests.tables.spark_reader import DELTA

EXTENSIONS = "spark.sql.extensions"


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the catalog of Iceberg tables."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def spark(lake: Path) -> Iterator[Any]:
    """The session of the tests, with Delta and Iceberg. It needs a process without another session."""
    from tests.lakehouse.iceberg_tables import settings
    from tests.sparksession import make_session

    try:
        jars, both = table_jars("delta"), dict(DELTA)
    except MissingJarsError as missing:
        pytest.skip(str(missing))
    if iceberg := _iceberg():
        jars, both = f"{jars},{iceberg}", {**DELTA, **settings(lake)}
        both[EXTENSIONS] = f"{DELTA[EXTENSIONS]},{both[EXTENSIONS]}"
    session = make_session(**both, **{"spark.jars": jars})
    yield session
    session.stop()


def _iceberg() -> str:
    try:
        return table_jars("iceberg")
    except MissingJarsError:
        return ""


@pytest.fixture
def orders(spark: Any, tmp_path: Path) -> Any:
    from tests.lakehouse.orders import Orders

    return Orders(spark, tmp_path)


@pytest.fixture
def iceberg(spark: Any, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A table of orders in Iceberg."""
    from tests.lakehouse.iceberg import IcebergOrders
    from tests.lakehouse.iceberg_tables import configure

    try:
        table_jars("iceberg")
    except MissingJarsError as missing:
        pytest.skip(str(missing))
    configure(lake, monkeypatch)
    return IcebergOrders(spark, tmp_path)

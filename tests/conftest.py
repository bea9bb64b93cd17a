"""The fixtures and settings that all tests share."""

import os
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from spark_rowtime.errors import SinkNotClosedWarning
from spark_rowtime.producer import unclosed
from tests.javaoptions import set_driver_options
from tests.selection import mark_long
from tests.sparkhome import set_spark_home

settings.register_profile(
    "explore", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("ci", settings.get_profile("explore"), derandomize=True, database=None)
settings.load_profile("ci")  # the same examples in each run; pytest --hypothesis-profile=explore tries others

EXTRACT = Path(__file__).parent / "data" / "usgs-quakes-2025-05-extract.csv"

# A job that a shell starts with & ignores SIGINT, and so do the processes that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
set_driver_options()
set_spark_home()


def pytest_unconfigure() -> None:
    """Sinks that tests have left open, as a process that dies does, are ended without a word."""
    with warnings.catch_warnings(action="ignore", category=SinkNotClosedWarning):
        unclosed._end_all(os.getpid())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_long(items)


@pytest.fixture(scope="session")
def quakes() -> Path:
    """Real earthquakes: the extract in tests/data, or the whole month if ROWTIME_TEST_DATA names its folder."""
    folder = os.environ.get("ROWTIME_TEST_DATA")
    return Path(folder) / "usgs-quakes-2025-05.csv" if folder else EXTRACT


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """One PostgreSQL server for all tests that need one; see tests/postgresserver.py."""
    from tests.postgresserver import started

    with started() as server, pytest.MonkeyPatch.context() as patched:
        from spark_rowtime.store.postgres import connection, removal
        from tests.patience import LOCK_SECONDS

        patched.setitem(connection.CLIENT, "connect_timeout", LOCK_SECONDS)  # the server may stand still
        patched.setattr(removal, "END_SECONDS", LOCK_SECONDS)  # what goes on at a sink's end is not stopped
        yield server


@pytest.fixture(scope="session")
def s3() -> Iterator[Any]:
    """One S3 server for all tests that need one; see tests/s3server.py."""
    from tests.s3server import S3Server

    pytest.importorskip("moto")
    server = S3Server()
    yield server
    server.stop()


def set_s3_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets this process use the server of the fixture ``s3``."""
    from tests.s3server import environment

    for name, value in environment().items():
        monkeypatch.setenv(name, value)


@pytest.fixture(params=["folder", "s3"])
def location(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A location of its own for each test: in a folder, and on an S3 server."""
    if request.param == "folder":
        return f"file://{tmp_path}/location"
    request.getfixturevalue("s3")
    set_s3_environment(monkeypatch)
    return f"s3://rows/{tmp_path.name}"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark session for all tests that need one; a test stops its queries and drops its views."""
    from tests.patience import wait_long_for_locks
    from tests.s3server import environment
    from tests.sparksession import make_session

    with pytest.MonkeyPatch.context() as patched:
        for name, value in environment().items():  # Python workers have the environment of the JVM
            patched.setenv(name, value)
        session = make_session()
    with pytest.MonkeyPatch.context() as patched:
        wait_long_for_locks(patched.setitem)
        yield session
    session.stop()


@pytest.fixture(scope="session")
def rowtime_spark(spark: Any) -> Any:
    """The fixtures of ``spark_rowtime.testing`` use the one session of all tests."""
    return spark


ON_HEAP = {
    *("test_shim_joins", "test_shim_automatic", "test_shim_windows", "test_shim_restart", "test_shim_output"),
    *("test_shim_sources", "test_shim_times", "test_shim_advice", "test_source", "test_sink"),
    *("test_sqlstream", "test_sqlstream_joins", "test_calcite", "test_sql", "test_feldera", "test_quakes"),
}
"""Files whose tests do not need RocksDB, the session's state store. With it a batch takes 1.5 times as long."""


@pytest.fixture(autouse=True)
def state_store(request: pytest.FixtureRequest) -> None:
    """Spark's default state store for the tests of ``ON_HEAP``."""
    if request.path.stem in ON_HEAP and "spark" in request.fixturenames:
        request.getfixturevalue("state_on_heap")


@pytest.fixture
def state_on_heap(spark: Any) -> Iterator[None]:
    """Spark's default state store."""
    from tests.sparksession import HEAP_STORE, ROCKSDB, STATE_PROVIDER

    spark.conf.set(STATE_PROVIDER, HEAP_STORE)
    yield
    spark.conf.set(STATE_PROVIDER, ROCKSDB)

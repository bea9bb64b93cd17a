"""What all tests share."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "explore", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("ci", settings.get_profile("explore"), derandomize=True, database=None)
settings.load_profile("ci")  # the same examples each time; others: pytest --hypothesis-profile=explore

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored behind &, also by what tests start


@pytest.fixture(scope="session")
def quakes() -> Path:
    """The earthquakes file, where ROWTIME_TEST_DATA says that it is."""
    folder = os.environ.get("ROWTIME_TEST_DATA")
    if not folder:
        pytest.skip("ROWTIME_TEST_DATA is not set: it names the folder with usgs-quakes-2025-05.csv")
    return Path(folder) / "usgs-quakes-2025-05.csv"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark session for all tests that need one; a test stops its queries and drops its views."""
    from tests.sparksession import make_session

    session = make_session()
    yield session
    session.stop()

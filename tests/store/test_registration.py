"""A reader that cannot register its position just now."""

from pathlib import Path

import pytest

from spark_rowtime.store import open_store
from spark_rowtime.store.local.catalog import CATALOG, Catalog
from spark_rowtime.store.registration import RETRY_SECONDS, TELL_SECONDS, Registration
from tests.store.streams import Writer, place


def test_a_warning_says_so_only_if_it_lasts(local_path: str, caplog: pytest.LogCaptureFixture) -> None:
    """Where others commit all the time, an attempt fails now and then, and the next one succeeds."""
    store, now = open_store(local_path), [0.0]
    Writer(store, "feed").send([1], [2])
    registration = Registration(store, "reader", clock=lambda: now[0])
    registration.keep(place(1))
    other = Catalog(Path(local_path, CATALOG), "process", 0)
    with other.transaction("IMMEDIATE"):
        for moment in (RETRY_SECONDS, TELL_SECONDS):
            now[0] = moment
            registration.keep(place(2))
            assert not caplog.records
        for moment in (RETRY_SECONDS + TELL_SECONDS, 2 * RETRY_SECONDS + TELL_SECONDS):
            now[0] = moment
            registration.keep(place(2))
            assert len(caplog.records) == 1
    assert "knows its position at seq 1 of it" in caplog.text
    now[0] += RETRY_SECONDS
    registration.keep(place(2))
    assert [info.position for info in store.snapshot().readers] == [place(2)]
    other.close()
    store.close()


def test_a_warning_says_at_once_that_nothing_is_registered(local_path: str, caplog: pytest.LogCaptureFixture) -> None:
    store, other = open_store(local_path), Catalog(Path(local_path, CATALOG), "process", 0)
    with other.transaction("IMMEDIATE"):
        Registration(store, "reader").keep(place(1))
    assert "knows no position of it" in caplog.text
    other.close()
    store.close()

"""Checkpoints of any size; a large one is written once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from spark_rowtime.errors import StoreCorruptError
from spark_rowtime.store.local import LocalStore, check_local
from tests.store.streams import NewStream, Writer, infos

Open = Callable[..., LocalStore]


def test_a_checkpoint_stays_until_the_next(new_stream: NewStream) -> None:
    open_stream = new_stream()
    store = open_stream()
    writer = Writer(store, "a")
    for checkpoint in ("small", "x" * 5_000, "ü" * 2_000, "y", "", "z" * 1_024):
        writer.send([1], floor=1, checkpoint=checkpoint)
        writer.send([1], floor=1)
        for handle in (store, open_stream()):
            (info,) = infos(handle)
            assert handle.producer("a") == info
            assert info.checkpoint == checkpoint
    assert store.producer("nobody") is None


def test_a_large_checkpoint_is_not_written_again_with_each_commit(open_here: Open, local_path: str) -> None:
    store = open_here()
    writer = Writer(store, "a")
    writer.send([1], floor=1, checkpoint="x" * 2_000_000)
    store._catalog.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for second in range(2, 52):
        writer.send([second], floor=second)
    assert (Path(local_path) / "catalog.db-wal").stat().st_size < 2_000_000


def test_a_large_checkpoint_that_is_lost_is_damage(open_here: Open, local_path: str) -> None:
    store = open_here()
    Writer(store, "a").send([1], floor=1, checkpoint="x" * 5_000)
    store._catalog.execute("DELETE FROM checkpoints")
    with pytest.raises(StoreCorruptError, match="the checkpoint of producer 'a'"):
        infos(store)
    assert "the checkpoint of producer 'a'" in check_local(local_path).damage[0]

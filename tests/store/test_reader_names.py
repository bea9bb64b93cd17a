"""Who takes the name of another reader in a directory: what docs/security.md says holds, and what it says does not."""

from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.store import open_store
from tests.otheruser import run, share, shared
from tests.store.streams import place
from tests.streams import send

__all__ = ["shared"]
ATTACKS = """
import sys
import spark_rowtime as rt
from spark_rowtime.store import open_store
from spark_rowtime.store.position import Position
with rt.openReader(sys.argv[1], name="alerts") as reader:
    reader.read()
with open_store(sys.argv[1]) as store:
    for call in (lambda: store.keep("alerts", Position(3, None, None)), lambda: store.forget("alerts")):
        try:
            call()
        except rt.StoreUnavailableError as error:
            print(error.values["lacks"])
"""


def make(path: str) -> None:
    """A stream whose bound has released three rows."""
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
    with rt.openSink(path, producer="shop") as sink:
        for n in range(3):
            send(sink, (f"9:0{n}", n), promise=f"9:0{n}")
        send(sink, promise="9:30")


def test_who_may_only_read_moves_and_takes_no_name(shared: Path) -> None:
    path = str(shared / "s")
    make(path)
    share(shared)
    said, _ = run("-c", ATTACKS, path)
    assert said.splitlines() == ["write permission"] * 2
    with open_store(path) as store:
        assert not store.snapshot().readers


def test_who_may_write_moves_any_position_and_the_reader_is_told(tmp_path: Path) -> None:
    """A name is nobody's in a directory. No row is lost silently: the reader learns that some are gone."""
    path = str(tmp_path / "s")
    make(path)
    with rt.openReader(path, name="alerts", order="arrival") as reader:
        position = reader.position
    with open_store(path) as attacker:
        attacker.keep("alerts", place(attacker.head().seq))
        assert attacker.gc(age=0).rows == 3
    with rt.openReader(path, name="alerts", order="arrival", start=position) as reader, pytest.raises(rt.DataLostError):
        reader.read()

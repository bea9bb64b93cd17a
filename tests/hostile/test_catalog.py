"""A catalog made by a stranger: nothing in it is run or unpickled, and what is wrong with it is said."""

import ast
import pickle
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.store import open_store
from spark_rowtime.store.snapshot import READER
from tests.hostile.feeds import TIME
from tests.streams import opened

TABLES = (
    "meta", "producers", "events", "rejected", "rejected_origins", "rejected_totals", "readers", "uptime",
    "checkpoints", "producer_totals", "key_floors", "accounts",
)  # fmt: skip
EVIL = "x'); DROP TABLE events; --"


class Bomb:
    """Unpickled, it writes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return Path.touch, (self.file,)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A stream with a row in every table."""
    path = str(tmp_path / "s")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, v STRING")
    with rt.openReader(path, name="reader") as reader, opened(path, "late", lateness="1 hour", onLate="reject") as sink:
        sink.sendRows([(TIME, "a"), ("2006-09-11T12:00:00Z", "b")])
        sink.flush("checkpoint" * 200)
        sink.sendRow((TIME, "late"))
        sink.flush()
        list(reader)
        reader.read()
    with opened(path, "keys", inOrderPer="v") as sink:
        sink.sendRow(("2006-09-11T12:00:00Z", "b"))
    with closing(open_store(path)) as store:
        store.put_status(READER, "query", "{}")
    return path


def use(path: str) -> list[Any]:
    """Everything that anybody does with a stream; what it gave, or was refused with."""
    calls = (rt.describeStream, _read, _views, _send, _collect)
    return [_outcome(call, path) for call in calls]


def _outcome(call: Any, path: str) -> Any:
    try:
        return call(path)
    except rt.RowtimeError as error:
        return error


def _read(path: str) -> list[Any]:
    with rt.openReader(path, name="reader") as reader:
        return [row for train in reader for row in train.rows.to_pylist()]


def _views(path: str) -> list[Any]:
    with closing(open_store(path)) as store:
        return [store.bounds(), store.rejected(), store.snapshot(full=True).clock]


def _send(path: str) -> int:
    with opened(path, "late", lateness="1 hour", onLate="reject") as sink:
        sink.sendRow(("2006-09-11T13:00:00Z", "c"))
    return rt.describeStream(path).rows


def _collect(path: str) -> Any:
    with closing(open_store(path)) as store:
        return store.gc(age=0)


def damage(outcomes: list[Any]) -> list[Any]:
    return [outcome for outcome in outcomes if isinstance(outcome, rt.StoreCorruptError)]


def catalog(path: str) -> Any:
    return closing(sqlite3.connect(f"{path}/catalog.db", isolation_level=None))


def cells(path: str) -> Iterator[tuple[str, str]]:
    with catalog(path) as db:
        for table in TABLES:
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone()[0], table
            for column in db.execute(f"PRAGMA table_info({table})"):
                yield table, column[1]


def put(path: str, table: str, column: str, value: Any) -> bool:
    """Whether SQLite let it be changed."""
    with catalog(path) as db, suppress(sqlite3.IntegrityError):
        db.execute(f"UPDATE OR REPLACE {table} SET {column} = ?", (value,))
        return True
    return False


VALUES = [None, -1, 2**63 - 1, 1e308, "", "x", EVIL, b"\x00\xff", "y" * 2_000_000]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:12])
def test_a_cell_that_was_changed_is_damage(path: str, value: Any, tmp_path: Path) -> None:
    found = 0
    for table, column in list(cells(path))[VALUES.index(value) % 4 :: 4]:
        changed = str(shutil.copytree(path, tmp_path / f"{table}-{column}"))
        if put(changed, table, column, value):
            outcomes = use(changed)
            found += bool(damage(outcomes))
            assert all(len(str(outcome)) < 2000 for outcome in outcomes if isinstance(outcome, rt.RowtimeError))
    assert found
    assert not damage(use(path))


SCHEMAS = {
    "trigger": "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM rejected; END",
    "trigger on a producer": "CREATE TRIGGER t BEFORE UPDATE ON producers BEGIN SELECT load_extension('x'); END",
    "view": "ALTER TABLE events RENAME TO e; CREATE VIEW events AS SELECT * FROM e",
    "another table": "CREATE TABLE more (x)",
    "another column": "ALTER TABLE events ADD COLUMN more DEFAULT 1",
    "an index on an expression": "CREATE INDEX more ON events (abs(time))",
    "no index": "DROP INDEX spans",
    "no table": "DROP TABLE rejected",
    "virtual table": "CREATE VIRTUAL TABLE more USING fts5(x)",
}


@pytest.mark.parametrize("case", SCHEMAS)
def test_tables_of_another_make_are_refused(path: str, case: str) -> None:
    with catalog(path) as db:
        db.executescript(SCHEMAS[case])
    outcomes = use(path)
    assert damage(outcomes) == outcomes
    assert "tables are not those of format" in str(outcomes[0])


def test_nothing_is_unpickled(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exploded = tmp_path / "exploded"
    bomb = pickle.dumps(Bomb(exploded), protocol=0)
    for module in [m for name, m in sys.modules.items() if name.startswith("spark_rowtime.store.local.")]:
        if hasattr(module, "intact"):  # the stranger knows how rows are sealed
            monkeypatch.setattr(module, "intact", lambda row, _: row[:-1])
    for number, (table, column) in enumerate(cells(path)):
        changed = str(shutil.copytree(path, tmp_path / f"{table}-{column}"))
        if put(changed, table, column, bomb if number % 2 else bomb.decode()):
            with suppress(Exception):
                use(changed)
    assert not exploded.exists()
    pickle.loads(bomb)
    assert exploded.exists(), "the bomb works"


@pytest.mark.parametrize("checkpoint", [EVIL, "{}", "\n", "größe", "x" * 100_000])
def test_texts_are_kept_as_they_are(tmp_path: Path, checkpoint: str) -> None:
    path, name = str(tmp_path / "s"), f"it's {checkpoint[:100].strip()}"
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL")
    with pytest.raises(KeyError), opened(path, name) as sink:
        sink.sendRow((TIME,))
        sink.flush(checkpoint)
        raise KeyError
    with opened(path, name) as sink:
        assert sink.checkpoint == checkpoint
    [producer] = rt.describeStream(path).producers
    assert (producer.name, producer.checkpoint) == (name, checkpoint)


@pytest.mark.parametrize("odd", [5, b"x", ["x"], "\ud800", "a\x00b", {"a": 1}])
def test_names_and_checkpoints_that_are_no_text(tmp_path: Path, odd: Any) -> None:
    path = str(tmp_path / "s")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL")
    with pytest.raises(rt.InvalidOptionError, match="producer="):
        rt.openSink(path, producer=odd)
    with pytest.raises(rt.InvalidOptionError, match="name="):
        rt.openReader(path, name=odd)
    with opened(path, "feed") as sink:
        sink.sendRow((TIME,))
        with pytest.raises(rt.InvalidOptionError, match="checkpoint="):
            sink.flush(odd)
        sink.flush("good")
        assert sink.checkpoint == "good"
    assert rt.describeStream(path).rows == 1


def test_the_package_has_no_word_that_unpickles() -> None:
    """Nothing here reads a pickle, or runs a text of a stream's.

    Spark pickles partitions and writers between the processes of a query; versioned_pickle.py checks the version before
    Spark's own bytes are read. worker_start.py runs a program of PySpark's, as Spark does.
    """
    banned = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "runpy"}
    runs, may_run = [], ("versioned_pickle.py", "worker_start.py")
    package = Path(rt.__file__).parent
    for file in sorted(set(package.rglob("*.py")) - {package / "spark" / name for name in may_run}):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not banned & {name.partition(".")[0] for name in names}, file
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("exec", "eval"):
                runs.append(file.name)
    assert runs == ["row_buffer.py"], "its text is made of column types and numbers alone"

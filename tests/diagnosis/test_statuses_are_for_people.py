"""Law: no result depends on a status. Nobody reads statuses but those who explain."""

import ast
from pathlib import Path

import spark_rowtime as rt
from spark_rowtime.store import open_store
from spark_rowtime.store.snapshot import READER

PACKAGE = Path(rt.__file__).parent
READERS = ("diagnosis", "store")
"""The packages that may read statuses: those who explain, and the stores that keep them."""


def test_only_those_who_explain_read_statuses() -> None:
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if (
                isinstance(node, ast.Attribute)
                and node.attr in ("statuses", "query_status")
                and isinstance(node.ctx, ast.Load)
            ):
                found.add(file.relative_to(PACKAGE).as_posix())
    others = sorted(name for name in found if not name.startswith(READERS))
    # The sink takes the status of its task to the commit; a new run of a query takes over that of the last one.
    # What is told of a table explains, too.
    assert others == ["drain/tables/why.py", "spark/sink.py", "spark/status_reporter.py"]


def test_a_reader_sees_the_same_whatever_statuses_say(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL")
    with rt.openSink(path, producer="a") as sink:
        sink.sendRow(("2006-09-11T10:00:00Z",))

    def seen() -> list[object]:
        with rt.openReader(path) as reader:
            return [(train.rows.to_pylist(), train.bound) for train in reader]

    before = seen(), rt.describeStream(path)
    with open_store(path) as store:
        store.put_status(READER, "q", "no JSON at all")
    assert (seen(), rt.describeStream(path)) == before

"""TableState: what a table says of itself, for who asks why it is not complete."""

from dataclasses import dataclass

from spark_rowtime.drain.properties import bound_in
from spark_rowtime.drain.tables.delta import DeltaTable
from spark_rowtime.drain.tables.iceberg import IcebergTable
from spark_rowtime.drain.tables.reach import DELTA
from spark_rowtime.store.query_status import QueryStatus
from spark_rowtime.store.snapshot import WRITER, ReportedStatus


@dataclass(frozen=True)
class TableState:
    """A table as it is now. Times are in microseconds; ``moved``: of the last commit by this library."""

    target: str
    commits: int
    floor: int | None
    moved: int | None
    properties: dict[str, str]
    query_status: QueryStatus | None

    @classmethod
    def of(cls, target: str) -> "TableState":
        table = DeltaTable(target, None) if target.startswith(DELTA) else IcebergTable(target, None)
        bound, last = bound_in(table.properties), table.last
        return cls(
            target,
            table.commits,
            None if bound is None else bound.floor,
            None if last is None else last.moved,
            table.properties,
            None if last is None else _status(last.account),
        )


def _status(account: object) -> QueryStatus | None:
    """What the query that has made the commit says of itself."""
    return None if account is None else QueryStatus.of(ReportedStatus(WRITER, "", str(account), 0))

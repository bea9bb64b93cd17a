"""A Delta table that says how far it is complete: rows, bound and position are one commit of it.

A drain writes it, as `rowtime drain orders.rowtime delta:lake/orders` does. Whoever reads the table finds the bound in
its commits, and leaves out the hour that is not complete. Reading needs `deltalake`, and nothing of this project.

It prints:

    in the table: 3 orders
    complete below 2006-09-11T11:00:00Z: 2 orders
    after the next drain, below 2006-09-11T12:00:00Z: 4 orders
"""

import tempfile
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder

import spark_rowtime as rt

DAY = "2006-09-11T{}:00Z"


def drain(stream: str, table: str) -> None:
    """Continues at the position that the table has."""
    with rt.openReader(stream, order="arrival") as reader, rt.openTableSink(f"delta:{table}", reader.schema) as sink:
        reader.drainTo(sink)


def rows_of(delta: DeltaTable) -> pa.Table:
    """The table's rows."""
    return pa.table(QueryBuilder().register("orders", delta).execute("SELECT * FROM orders"))


def complete(table: str) -> tuple[str, int]:
    """The bound of the last commit that has one, and the number of rows below it.

    Commits whose rows a RESTORE has taken away are left out.
    """
    delta = DeltaTable(table)
    commits = {commit["version"]: commit for commit in delta.history()}
    version = delta.version()
    while "rowtime.bound" not in commits[version]:
        commit = commits[version]
        version = int(commit["operationParameters"]["version"]) if commit["operation"] == "RESTORE" else version - 1
    bound = commits[version]["rowtime.bound"]
    below = pc.field("rowtime") < pa.scalar(datetime.fromisoformat(bound))
    return bound, rows_of(delta).filter(below).num_rows


folder = tempfile.mkdtemp()
orders, table = f"{folder}/orders.rowtime", f"{folder}/lake"
rt.createStream(orders, "rowtime TIMESTAMP NOT NULL, units INT")
with rt.openSink(orders, producer="shop", rowsImplyBounds=False) as shop:
    shop.sendRows([(DAY.format("10:05"), 2), (DAY.format("11:10"), 4), (DAY.format("10:50"), 1)])
    shop.sendRowtimeBound(DAY.format("11:00"))
    shop.flush()
    drain(orders, table)
    print(f"in the table: {rows_of(DeltaTable(table)).num_rows} orders")
    print("complete below {}: {} orders".format(*complete(table)))
    shop.sendRow((DAY.format("11:40"), 3))
    shop.sendRowtimeBound(DAY.format("12:00"))
drain(orders, table)
print("after the next drain, below {}: {} orders".format(*complete(table)))

"""``rowtime why`` through a chain of Iceberg tables, by what Iceberg's own sink has written into their snapshots."""

from pyspark.sql import functions as f

import spark_rowtime as rt
from spark_rowtime.drain.properties import QUERY_STATUS
from tests.lakehouse.chain import Chain
from tests.lakehouse.explained import require_behind, require_explained
from tests.lakehouse.iceberg import IcebergOrders
from tests.sparksession import running
from tests.streams import at

MOST = 500
"""How many characters of a snapshot a query may take for that. A snapshot has some 1,200 without it."""


def test_each_link_of_a_chain_is_named(iceberg: IcebergOrders) -> None:
    chain = Chain(iceberg.spark, iceberg.folder, iceberg.tables)
    chain.made()
    iceberg.put(("10:10", "a"), bound="10:30")
    iceberg.put(("10:50", "a"), bound="11:10")
    with running(chain.start("silver")) as silver, running(chain.start("gold")) as gold:
        for query in (silver, gold):
            query.processAllAvailable()
        with running(chain.start("day")) as day:
            day.processAllAvailable()
            require_explained(chain, [silver, gold, day])
    with running(chain.start("silver")) as silver:
        iceberg.put(bound="12:00")
        silver.processAllAvailable()
    require_behind(chain, gold)
    assert all(0 < len(said) < MOST for said in accounts(iceberg, "gold"))


def test_the_weakest_source_of_a_union_is_named(iceberg: IcebergOrders) -> None:
    other = IcebergOrders(iceberg.spark, iceberg.folder)
    iceberg.put(("10:10", "a"), bound="11:00")
    other.put(("10:20", "b"), bound="10:30")
    both = iceberg.rows().union(other.rows()).select(f.col("ts").alias("at"), "k")
    iceberg.tables.make(iceberg.spark, "silver", "at TIMESTAMP, k STRING")
    writer = both.writeStream.queryName("both").option("checkpointLocation", str(iceberg.folder / "checkpoint"))
    with running(iceberg.tables.write(writer.option("rowtimeBound", "at"), "silver")) as query:
        query.processAllAvailable()
    found = rt.whyTable(iceberg.tables.target("silver"), at("10:45"))
    assert (found.cause, [link.name for link in found.chain]) == (
        rt.Cause.NOT_OURS,
        [other.tables.target("orders"), "both", iceberg.tables.target("silver")],
    )


def accounts(orders: IcebergOrders, table: str) -> list[str]:
    """What the query has said of itself, in each snapshot."""
    snapshots = orders.tables.loaded(table).snapshots()
    return [snapshot.summary.additional_properties[QUERY_STATUS] for snapshot in snapshots]

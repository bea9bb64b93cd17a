"""Bronze, silver, gold: each query writes its output's bound into the commits of its table, and the next one has it."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

import spark_rowtime as rt
from tests.lakehouse.chain import Chain
from tests.lakehouse.explained import require_behind, require_explained
from tests.lakehouse.orders import Orders
from tests.sparksession import running
from tests.streams import at


def rows(chain: Chain, table: str) -> list[tuple[Any, ...]]:
    found = chain.spark.read.format("delta").load(str(chain.folder / table)).orderBy("end").collect()
    return [(f"{row[0]:%H:%M}", *row[1:]) for row in found]


def said(chain: Chain, table: str) -> list[dict[str, Any]]:
    """The properties of each commit that a query has made."""
    found = []
    for file in sorted(Path(chain.folder, table, "_delta_log").glob("*.json")):
        [info] = [json.loads(line)["commitInfo"] for line in file.read_text().splitlines() if '"commitInfo"' in line]
        found.append(json.loads(info.get("userMetadata", "{}")))
    return [one for one in found if one]


def test_windows_close_along_a_chain_of_tables(orders: Orders) -> None:
    chain = Chain(orders.spark, orders.folder)
    chain.made()
    orders.put(("10:10", "a"), ("10:20", "noise"), bound="10:30")
    with running(chain.start("silver")) as silver, running(chain.start("gold")) as gold:
        silver.processAllAvailable()
        assert rt.readTableBound(f"delta:{orders.folder}/silver") == rt.RowtimeBound(at("10:30"))
        gold.processAllAvailable()
        assert rows(chain, "gold") == [("10:20", "a", 1)]
        orders.put(("10:50", "a"), bound="11:10")
        with running(chain.start("day")) as day:
            for query in (silver, gold, day):
                query.processAllAvailable()
            assert rows(chain, "day") == [("11:00", 2)]
        assert rt.readTableBound(f"delta:{orders.folder}/day") == rt.RowtimeBound(at("11:00:00.000001"))
        require_explained(chain, [silver, gold, day])
    with running(chain.start("silver")) as silver:
        orders.put(bound="12:00")
        silver.processAllAvailable()
    require_behind(chain, gold)
    assert {one["rowtime.query"] for one in said(chain, "gold")} == {str(gold.id)}
    last = said(chain, "gold")[-1]
    assert (last["rowtime.bound"], last["rowtime.strict"]) == (at("11:10:00.000001"), "false")
    assert last["rowtime.column"] == "end"


def test_a_query_whose_output_has_no_such_bound_is_refused(orders: Orders) -> None:
    orders.put(("10:10", "a"), bound="10:30")
    writer = orders.rows().writeStream.format("delta").option("checkpointLocation", str(orders.folder / "checkpoint"))
    query = writer.option("rowtimeBound", "window.end").start(str(orders.folder / "wrong"))
    with pytest.raises(StreamingQueryException, match=r"the output has no such column\. It has ts, k"), running(query):
        query.processAllAvailable()

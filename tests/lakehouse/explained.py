"""What ``rowtime why`` says of a chain of three tables, of either format, whose first one is by others."""

from typing import Any

import spark_rowtime as rt
from tests.lakehouse.chain import TABLES, Chain
from tests.streams import at


def require_explained(chain: Chain, queries: list[Any]) -> None:
    """Bronze has the bound 11:10, and the queries have read it."""
    day = chain.tables.target("day")
    found = rt.whyTable(day, at("11:00"))
    assert (found.complete, found.cause) == (True, rt.Cause.COMPLETE)
    found = rt.whyTable(day, at("12:00"))
    assert (found.complete, found.cause, found.holder) == (False, rt.Cause.NOT_OURS, None)
    links = [(link.kind, link.name) for link in found.chain]
    assert links[::2] == [("table", chain.tables.target(name)) for name in ("orders", *TABLES)]
    assert links[1::2] == [("query", str(query.id)) for query in queries]


def require_behind(chain: Chain, gold: Any) -> None:
    """Silver has gone on to 12:00, and gold has not."""
    found = rt.whyTable(chain.tables.target("day"), at("12:00"))
    assert (found.cause, found.holder) == (rt.Cause.QUERY_BEHIND, str(gold.id))

"""Other queries that write into the stream of a query: what the log and errors say of them."""

import logging

from spark_rowtime.bounds.members import Status
from spark_rowtime.bounds.origin import STREAM, BoundOrigin
from spark_rowtime.store.base import Store
from spark_rowtime.store.query_status import QUERY_PRODUCER

LOG = logging.getLogger("spark_rowtime.spark")


def tell_of_other_queries(store: Store, path: str, producer: str) -> None:
    """Warns in the driver's log if other queries write where ``producer`` is about to write for the first time."""
    others = [p.name for p in store.snapshot().records.values() if p.status is Status.ATTACHED and is_query(p.name)]
    for other in others:
        LOG.warning(
            "Query %s begins to write to %s. %s writes there, too, and the stream's bound waits for both. If this "
            "query was started again without its checkpoint, its results come a second time: stop it, and start it "
            "with a new output. If the other one will not go on: rowtime detach %s %s",
            producer.removeprefix(QUERY_PRODUCER),
            path,
            other,
            path,
            other,
        )


def is_query(producer: str | None) -> bool:
    """Whether a query writes under this name."""
    return producer is not None and producer.startswith(QUERY_PRODUCER)


def way_out(origin: BoundOrigin | None) -> str:
    """What to do about output below a bound of that origin."""
    if origin is not None and origin.owner == STREAM and is_query(origin.producer):
        return (
            "If this query was started again because its checkpoint was deleted, its results are "
            "in the stream already: start it with a new stream as output. Otherwise check which column is its rowtime"
        )
    return "Check which column is its rowtime, write to a stream of its own"

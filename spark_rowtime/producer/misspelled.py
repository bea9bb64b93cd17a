"""A producer that opens under a name that is nearly one that the stream expects."""

import logging
import re

from spark_rowtime.store.base import Store
from spark_rowtime.store.record import ProducerInfo
from spark_rowtime.types.arguments import nearest

_NUMBER = re.compile(r"\d+")
LOG = logging.getLogger("spark_rowtime")


def tell_of_misspelled(store: Store, joined: ProducerInfo) -> None:
    """Warns if a new producer has joined while an expected one of nearly the same name holds the stream.

    A stream that an expected producer holds has no bound. Where it has one, a new producer begins with it, and the
    store is not asked.
    """
    if joined.number or joined.epoch > 1 or joined.floor is not None:
        return
    now = store.summary()
    if now.expected and now.holder is not None and _is_nearly(joined.name, now.holder):
        LOG.warning(
            "Producer %r has joined %s, which still waits for %r, an expected producer of nearly the same name. If the "
            "two are one feed, correct the name, and let the other one go: rowtime close %s %s",
            joined.name,
            store.path,
            now.holder,
            store.path,
            now.holder,
        )


def _is_nearly(name: str, other: str) -> bool:
    """Whether the names are alike, but do not differ in a number alone, as those of several feeds do."""
    return nearest(name, [other]) is not None and _NUMBER.sub("", name) != _NUMBER.sub("", other)

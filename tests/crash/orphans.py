"""Objects that no commit names, since the process that wrote them was killed: ``gc`` removes them, and nothing else."""

from spark_rowtime.store import check_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.postgres.objects import InObject
from spark_rowtime.store.retention import STAGED_RETENTION_MICROS
from spark_rowtime.store.steady_clock import Reading
from tests.store.streams import EMPTY, WHOLE


def named_objects(store: Store) -> set[str]:
    """The objects that commits name."""
    pieces = store.carry(store.slices(EMPTY, WHOLE))
    return {piece.location.object for piece in pieces if isinstance(piece.location, InObject)}


def remove_orphans(path: str) -> int:
    """Runs ``gc`` now and a day later. Checks what it removes, and every row that is left; returns how many it were."""
    with open_store(path) as store:
        now = [STAGED_RETENTION_MICROS]
        store.now, store.steady = lambda: now[0], lambda: Reading("a day later", now[0])
        named, there = named_objects(store), set(store.objects.sizes())
        assert named <= there
        assert store.gc().files == 0, "it has seen them for the first time"
        now[0] += STAGED_RETENTION_MICROS
        assert store.gc().files == len(there - named)
        assert set(store.objects.sizes()) == named
    assert check_store(path).damage == []
    return len(there - named)

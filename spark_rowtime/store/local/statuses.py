"""The statuses in the catalog: what queries and hosts of adapters last reported about themselves."""

from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import intact, sealed
from spark_rowtime.store.snapshot import FORGET_STATUS_MICROS, WRITER, ReportedStatus

_COLUMNS = "SELECT role, name, seen, content, seal FROM accounts"


def save(catalog: Catalog, role: str, name: str, content: str, now: int) -> None:
    """Replaces the status at the uptime ``now``. Call it in a transaction."""
    values = (role, name, now, content)
    catalog.execute("INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?, ?)", sealed(values))
    if role != WRITER:
        catalog.execute("DELETE FROM accounts WHERE role <> ? AND seen < ?", (WRITER, now - FORGET_STATUS_MICROS))


def known(catalog: Catalog, now: int = 0) -> list[ReportedStatus]:
    """Returns all statuses by role and name, at the uptime ``now``."""
    rows = [intact(row, "accounts") for row in catalog.execute(f"{_COLUMNS} ORDER BY role, name")]
    return [ReportedStatus(role, name, content, max(now - seen, 0)) for role, name, seen, content in rows]

"""Streams in a PostgreSQL database, which the processes of any machines share. Needs the pip extra ``postgres``."""

from spark_rowtime.store.postgres.database import (
    check_postgres,
    create_postgres,
    delete_postgres,
    list_postgres,
    open_postgres,
    rename_postgres,
)
from spark_rowtime.store.postgres.history import exported, import_postgres
from spark_rowtime.store.postgres.store import PostgresStore
from spark_rowtime.store.postgres.trains import InlineTrains

__all__ = [
    "InlineTrains",
    "PostgresStore",
    "check_postgres",
    "create_postgres",
    "delete_postgres",
    "exported",
    "import_postgres",
    "list_postgres",
    "open_postgres",
    "rename_postgres",
]

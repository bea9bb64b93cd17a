"""What the package offers. Importing it needs psycopg, from the pip extra ``postgres``."""

from spark_rowtime.store.postgres.database import (
    adopt_postgres,
    check_postgres,
    create_postgres,
    delete_postgres,
    list_postgres,
    open_postgres,
    rename_postgres,
)
from spark_rowtime.store.postgres.history import exported, import_postgres
from spark_rowtime.store.postgres.store import PostgresStore

__all__ = [
    "PostgresStore",
    "adopt_postgres",
    "check_postgres",
    "create_postgres",
    "delete_postgres",
    "exported",
    "import_postgres",
    "list_postgres",
    "open_postgres",
    "rename_postgres",
]

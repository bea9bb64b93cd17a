"""The accounts in the database: what queries and hosts of adapters last reported about themselves."""

from spark_rowtime.store.base import WRITER
from spark_rowtime.store.postgres.transaction import Transaction

ALL = 'SELECT role, name, content, seen FROM rowtime.accounts WHERE stream = %s ORDER BY role COLLATE "C", name'
_SAVE = (
    "INSERT INTO rowtime.accounts (stream, role, name, seen, content) VALUES (%s, %s, %s, %s, %s) "
    "ON CONFLICT (stream, role, name) DO UPDATE SET seen = excluded.seen, content = excluded.content"
)


def save(transaction: Transaction, name: str, content: str) -> None:
    """Replaces the account of a query that writes, with its commit."""
    transaction.write(_SAVE, transaction.stream, WRITER, name, transaction.at.uptime, content)

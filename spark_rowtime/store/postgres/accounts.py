"""The accounts in the database: what queries and hosts of adapters last reported about themselves."""

from typing import Any

from spark_rowtime.store.base import FORGET_ACCOUNT_MICROS, WRITER, Account
from spark_rowtime.store.postgres.transaction import Transaction

ALL = 'SELECT role, name, content, seen FROM rowtime.accounts WHERE stream = %s ORDER BY role COLLATE "C", name'
OF_ROLE = "SELECT role, name, seen, content FROM rowtime.accounts WHERE stream = %s AND role = %s ORDER BY name"
_SAVE = (
    "INSERT INTO rowtime.accounts VALUES (%s, %s, %s, %s, %s) "
    "ON CONFLICT (stream, role, name) DO UPDATE SET seen = excluded.seen, content = excluded.content"
)
_REPORT = (
    "WITH old AS (DELETE FROM rowtime.accounts "
    "WHERE stream = %s AND role <> %s AND seen < %s AND (role, name) <> (%s, %s)) "
    "INSERT INTO rowtime.accounts SELECT stream, %s::text, %s::text, %s::bigint, %s::text FROM rowtime.heads "
    "WHERE stream = %s AND name = %s "
    "ON CONFLICT (stream, role, name) DO UPDATE SET seen = excluded.seen, content = excluded.content RETURNING name"
)


def save(transaction: Transaction, name: str, content: str) -> None:
    """Replaces the account of a query that writes, with its commit."""
    transaction.write(_SAVE, transaction.stream, WRITER, name, transaction.at.uptime, content)


def report(stream: int, path_name: str, account: Account, now: int) -> tuple[str, tuple[Any, ...]]:
    """Returns the statement that replaces an account at the uptime ``now``; it returns no row if the stream is gone.

    It locks nothing, as the users of readers may not change the stream's head.
    """
    about, limit = (account.role, account.name), now - FORGET_ACCOUNT_MICROS
    return _REPORT, (stream, WRITER, limit, *about, *about, now, account.content, stream, path_name)


def opened(row: tuple[Any, ...], now: int) -> Account:
    """Returns a row of ``ALL`` as of the uptime ``now``."""
    role, name, content, seen = row
    return Account(role, name, content, max(now - seen, 0))

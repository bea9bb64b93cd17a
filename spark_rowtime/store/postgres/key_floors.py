"""The bounds of the values of producers' key columns in the database: the last whole state, and the changes since."""

from spark_rowtime.bounds.key_parts import KeyChanges
from spark_rowtime.store.postgres.ahead import SENT_AHEAD
from spark_rowtime.store.postgres.transaction import Transaction

PARTS = "SELECT content FROM rowtime.key_floors WHERE stream = %s AND producer = %s ORDER BY number"
ALL = "SELECT producer, content FROM rowtime.key_floors WHERE stream = %s ORDER BY producer, number"
_ADD = "INSERT INTO rowtime.key_floors VALUES (%s, %s, %s, %s)"
_COPY = f"INSERT INTO rowtime.key_floors VALUES (%s, %s, %s, {SENT_AHEAD})"  # noqa: S608  (a constant)
_REMOVE = "DELETE FROM rowtime.key_floors WHERE stream = %s AND producer = %s"


def add(transaction: Transaction, producer: str, number: int, keys: KeyChanges) -> None:
    """Stores the changes of the producer's commit ``number``."""
    stream = transaction.stream
    if keys.whole:
        transaction.write(_REMOVE, stream, producer)
    place = transaction.ahead.copied(keys, stream)
    sql, given = (_ADD, (keys.content,)) if place is None else (_COPY, place)
    transaction.write(sql, stream, producer, number, *given)

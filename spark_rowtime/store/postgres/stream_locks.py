"""The locks of a stream, besides that of its row in ``heads``: its row in ``gates``, and two advisory locks.

Every transaction on the stream locks the row in ``gates``, which never changes, before the row in ``heads``. Those that
wait for the former get it one after the other. Without it, each change of the row in ``heads`` would wake all that wait
for it, and each of them would follow the row to its new version to wait again. The lock in ``heads`` is what counts, as
for a client that does not lock the row in ``gates``; that one only lets one at a time come so far.

Law (*nobody waits for a reader*): whoever commits waits for no lock that a user without the rights of a writer can
have. Anybody who may connect to a database can have any of its advisory locks; a row can be locked by those alone who
may update its table. What an advisory lock decides here is only whether old rows are removed now or later.
"""

from spark_rowtime.store.postgres.connection import Statement

SNAPSHOTS = 0x726F7773 << 32
"""The advisory locks ``rows`` in ASCII, and then the stream's number: see :func:`reading_all`."""
COPIES = 0x726F7763 << 32
"""The advisory locks ``rowc``, and then the stream's number: see :func:`copied`."""


def reading_all(stream: int) -> int:
    """Returns the number of the lock that is shared by those who read the whole stream as of one moment.

    They take it before that moment, and read the log in portions, each as it is then. While one of them has it, nothing
    is removed that was there at that moment: no event, no object, no rejected row.
    """
    return SNAPSHOTS + stream


def unread(stream: int) -> Statement:
    """Returns the statement that asks whether nobody reads the whole stream, and keeps it so in the transaction."""
    return "SELECT pg_try_advisory_xact_lock(%s)", (reading_all(stream),)


def lock_stream(stream: int) -> Statement:
    """Returns the statement that locks the row in ``gates`` until the transaction ends."""
    return "SELECT 1 FROM rowtime.gates WHERE stream = %s FOR NO KEY UPDATE", (stream,)


def no_registration(stream: int) -> Statement:
    """Returns the statement that has a row if no reader registers just now, and keeps it so in the transaction.

    Who registers shares a lock on the row in ``gates``: the function ``rowtime.keep_reader`` takes it. Call it
    when :func:`lock_stream` has run.
    """
    return "SELECT 1 FROM rowtime.gates WHERE stream = %s FOR UPDATE SKIP LOCKED", (stream,)


def copied(stream: int) -> int:
    """Returns the number of the lock that a copy into the database has until it ends; see :mod:`.copies`."""
    return COPIES + stream

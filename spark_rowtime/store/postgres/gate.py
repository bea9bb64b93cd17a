"""The gate of a stream: the advisory lock that every transaction on the stream takes before it locks the head.

Those that wait for an advisory lock get it one after the other. Without it, each change of the head's row would wake
all that wait for the row, and each of them would follow the row to its new version to wait again. The lock of the row
is what counts, as for a client that does not take the gate; the gate only lets one at a time come that far.
"""

from spark_rowtime.store.postgres.connection import Statement

GATES = 0x726F7774 << 32
"""The advisory locks ``rowt`` in ASCII, and then the stream's number."""
SNAPSHOTS = 0x726F7773 << 32
"""The advisory locks ``rows``, and then the stream's number: see :func:`snapshot`."""

READERS = 0x726F7772 << 32
"""The advisory locks ``rowr``, and then the stream's number: see :func:`registering`."""
COPIES = 0x726F7763 << 32
"""The advisory locks ``rowc``, and then the stream's number: see :func:`copied`."""


def gate(stream: int) -> int:
    """Returns the number of the advisory lock."""
    return GATES + stream


def snapshot(stream: int) -> int:
    """Returns the number of the lock that is shared by those who read the whole stream as of one moment.

    They take it before that moment, and read the log in portions, each as it is then. While one of them has it, nothing
    is removed that was there at that moment: no event, no object, no rejected row.
    """
    return SNAPSHOTS + stream


def unread(stream: int) -> Statement:
    """Returns the statement that asks whether nobody reads the whole stream, and keeps it so in the transaction."""
    return "SELECT pg_try_advisory_xact_lock(%s)", (snapshot(stream),)


def enter(stream: int) -> Statement:
    """Returns the statement that takes the gate until the transaction ends."""
    return "SELECT pg_advisory_xact_lock(%s)", (gate(stream),)


def registering(stream: int) -> Statement:
    """Returns the statement that keeps ``gc`` from removing rows until the transaction, which registers a reader, ends.

    The users of readers may not lock the stream's head.
    """
    return "SELECT pg_advisory_xact_lock_shared(%s)", (READERS + stream,)


def removing(stream: int) -> Statement:
    """Returns the statement that keeps readers from registering until the transaction, which removes rows, ends."""
    return "SELECT pg_advisory_xact_lock(%s)", (READERS + stream,)


def copied(stream: int) -> int:
    """Returns the number of the lock that a copy into the database has until it ends; see :mod:`.copies`."""
    return COPIES + stream

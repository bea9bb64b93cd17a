"""adoptLocation makes a database the owner of a stream's objects, after the stream has moved there."""

from spark_rowtime.store import adopt_location


def adoptLocation(path: str) -> None:
    """Makes the database of the stream at ``path`` the owner of the objects in the stream's location.

    Objects have one owner: the database that created the stream. Another one neither removes them nor adds any. So a
    restored backup on a test server harms nothing. Call this once the stream has moved for good: its database was
    restored on another server, or a standby has taken over. From then on the former database is refused.

    Args:
        path: The path of a stream in PostgreSQL. If the stream has no location, nothing is changed.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        InvalidOptionError: The stream is not in PostgreSQL.
        StoreUnavailableError: The database or the location cannot be written just now.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.adoptLocation("postgresql://new.example.com/shop/orders")  # doctest: +SKIP
    """
    adopt_location(path)

"""createStream: makes a stream, or finds that one of the same schema and settings is there."""

import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from spark_rowtime.errors import InvalidOptionError, SchemaMismatchError, StreamExistsError
from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.location import to_location
from spark_rowtime.store.settings import REJECTED_BYTES, StreamSettings, not_default
from spark_rowtime.types.arguments import known_keywords, to_count, to_flag, to_name
from spark_rowtime.types.schema import is_schema_of, show_schema, stream_schema
from spark_rowtime.types.short_repr import short_repr, some
from spark_rowtime.types.timestamps import to_interval

LOG = logging.getLogger("spark_rowtime")


@known_keywords
def createStream(
    path: str,
    schema: Any,
    *,
    boundsBeforeRows: bool = True,
    maxLag: str | timedelta | None = None,
    idleTimeout: str | timedelta | None = None,
    maxAhead: str | timedelta | None = "1 day",
    retainAge: str | timedelta | None = None,
    retainBytes: int | None = None,
    retainRejected: int = REJECTED_BYTES,
    producers: Iterable[str] = (),
    closed: bool = False,
    location: str | None = None,
    existOk: bool = False,
) -> None:
    """Creates an empty stream at ``path``.

    An interval is a text, such as "100 ms", "1 hour" or "1 hour 30 minutes", or a timedelta.

    Committing processes remove rows beyond ``retainAge`` or ``retainBytes`` from time to time. They never remove rows
    that the bound has not released, nor rows that a query or a named reader has still to read.

    Args:
        path: A directory that does not exist yet, also as a ``file://`` URL; or
            ``postgresql://host:port/database/stream`` for a stream in a database, which needs the pip extra
            ``postgres``; or ``memory://name`` for a stream in the memory of this process.
        schema: A DDL string, a Spark StructType or a pyarrow schema. It needs a column
            ``rowtime TIMESTAMP NOT NULL``.
        boundsBeforeRows: If False, the stream has no bound until its first row, whatever its producers promise.
        maxLag: An interval of rowtime: how far the slowest producer may hold the fastest back. None: no limit.
        idleTimeout: An interval: a producer that is silent for longer does not count for the stream's bound until
            it sends again. None: a silent producer holds the bound back.
        maxAhead: An interval: a row whose rowtime is further than this ahead of the wall clock is rejected, and
            such a bound is refused, since it would make all rows before it late and cannot be taken back. The clock is
            that of the database, or of this machine. None, or "unlimited": no limit, for times that are not those of
            the present, such as bookings, forecasts and simulations.
        retainAge: An interval: rows that were committed longer ago are removed. None: all rows are kept.
        retainBytes: A number of bytes: rows beyond the newest ``retainBytes`` bytes are removed. None: all rows
            are kept.
        retainRejected: A number of bytes: the stream keeps the newest rejected rows up to this size (by default
            256 MiB). All rejected rows are counted.
        producers: The names of the producers that the stream waits for from the start: it has no bound until each of
            them has opened a sink and promised something, or is let go by ``detachProducer`` or ``closeProducer``. So
            feeds that start one after another lose no rows. Other producers may join too.
        closed: If True, no other producers than ``producers`` may join, under whatever name, adapters and queries
            included. ``alterStream`` lets others in.
        location: For a stream in PostgreSQL, the URL of a folder or bucket, such as "s3://bucket/rowtime": rows that
            are committed in trains of more than 64 KiB are stored there, one object each. It must not contain keys or
            passwords. None: all rows are in the database.
        existOk: If True, a stream of the same schema that exists already is left as it is. Settings that are given here
            must be those that it has. Producers that it does not know are not added, and a warning is logged. The
            stream may also have columns that ``alterStream`` has added.

    Raises:
        StreamExistsError: Something exists at ``path`` already, and ``existOk`` is False.
        SchemaMismatchError: The schema cannot be that of a stream, or, with ``existOk``, the stream has another one.
        InvalidOptionError: An argument has a value that cannot be used, or, with ``existOk``, that the stream does not
            have.
        StoreUnavailableError: The stream cannot be written just now.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-create", "rowtime TIMESTAMP NOT NULL, ticker STRING", idleTimeout="5 min")
        >>> rt.describeStream("memory://docs-create").schema.names
        ['rowtime', 'ticker']

        Two feeds of which the first ends before the second begins:

        >>> schema = "rowtime TIMESTAMP NOT NULL, ticker STRING"
        >>> rt.createStream("memory://docs-expected", schema, producers=["nyse", "xetra"])
        >>> with rt.openSink("memory://docs-expected", producer="nyse") as sink:
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        >>> rt.describeStream("memory://docs-expected").waitsFor
        "'xetra' (expected, has not opened)"
        >>> with rt.openSink("memory://docs-expected", producer="xetra") as sink:
        ...     sink.sendRow(("2026-01-05T09:00:00Z", "SAP"))
        >>> rt.describeStream("memory://docs-expected").bound
        RowtimeBound('2026-01-05T14:30:00Z')
    """
    arrow, expected = stream_schema(schema), to_names(producers)
    settings = StreamSettings(
        to_flag(boundsBeforeRows, "boundsBeforeRows"),
        to_interval(maxLag, "maxLag"),
        to_interval(idleTimeout, "idleTimeout"),
        to_max_ahead(maxAhead),
        to_interval(retainAge, "retainAge"),
        None if retainBytes is None else to_count(retainBytes, "retainBytes", unit="bytes"),
        to_count(retainRejected, "retainRejected", unit="bytes"),
        None if location is None else to_location(location),
        closed_to(expected) if to_flag(closed, "closed") else None,
    )
    to_flag(existOk, "existOk")
    try:
        create_store(path, arrow, settings, expected)
    except StreamExistsError:
        if not existOk:
            raise
        with open_store(path) as store:
            _check_same(store, path, arrow)
            _check_settings(store, path, settings)
            if expected:
                _tell_of_unknown(store, path, expected)


def to_max_ahead(value: str | timedelta | None) -> int | None:
    """Returns ``maxAhead`` in microseconds; None for no limit, which the text "unlimited" says too."""
    return None if value == "unlimited" else to_interval(value, "maxAhead")


def _check_settings(store: Store, path: str, given: StreamSettings) -> None:
    """Raises InvalidOptionError if a setting that is given, and not the default, is not that of the stream."""
    stored = store.settings
    for name, value in not_default(given).items():
        if getattr(stored, name) != getattr(given, name):
            there = not_default(stored).get(name, "its default")
            raise InvalidOptionError(
                f"The stream at {path} was created with {name} at {there}, and {value} is asked for. A stream keeps "
                "its settings: leave the argument out, or use another path. alterStream changes maxAhead and closed.",
                path=path,
                option=name,
                value=str(value),
            )


def _tell_of_unknown(store: Store, path: str, expected: Sequence[str]) -> None:
    """Warns of producers that the stream does not wait for, since it was there before."""
    unknown = sorted(set(expected) - set(store.snapshot().producers))
    if unknown:
        LOG.warning(
            "%s exists already, and existOk adds no producers: it does not know %s. If it is to wait for them, call "
            "rt.alterStream(path, producers=[...]).",
            path,
            some([repr(name) for name in unknown], 3),
        )


def closed_to(producers: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the names of the only producers of a stream that is to be closed to others; there must be some."""
    if not producers:
        raise InvalidOptionError(
            "closed=True without producers=[...] would let nobody send. Name the producers that may.", option="closed"
        )
    return producers


def to_names(producers: Any) -> tuple[str, ...]:
    """Returns the names of producers, each once, in their order."""
    if isinstance(producers, str) or not isinstance(producers, Iterable):
        raise InvalidOptionError(
            f"producers must be a list of names, such as ['Berlin', 'Oslo'], not {short_repr(producers)}.",
            option="producers",
            value=short_repr(producers),
        )
    return tuple(dict.fromkeys(to_name(name, "a name in producers") for name in producers))


def require_stream(path: str, schema: Any) -> None:
    """Raises StreamNotFoundError if there is no stream at ``path``, SchemaMismatchError if it has another schema.

    ``schema`` may lack columns that were added to the stream.
    """
    with open_store(path) as store:
        _check_same(store, path, stream_schema(schema))


def _check_same(store: Store, path: str, wanted: pa.Schema) -> None:
    if not is_schema_of(store.schema, wanted):
        raise SchemaMismatchError(
            f"The stream at {path} has the columns {show_schema(store.schema)}, not {show_schema(wanted)}. "
            "Use another path, or the stream's own schema.",
            path=path,
        )

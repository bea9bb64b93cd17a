"""What is done to whole streams: altering, copying, renaming, adopting, deleting and listing them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from spark_rowtime.errors import InvalidOptionError, RowtimeError, StreamBusyError
from spark_rowtime.store import adopt_location, copy_store, delete_store, list_stores, open_store, rename_store
from spark_rowtime.store.admission import use_of
from spark_rowtime.store.location import to_location
from spark_rowtime.store.record import ATTACHED
from spark_rowtime.store.settings import Change, StreamSettings
from spark_rowtime.store.until import Limit
from spark_rowtime.stream import closed_to, to_max_ahead, to_names
from spark_rowtime.stream_description import describeStream
from spark_rowtime.stream_info import StreamInfo
from spark_rowtime.types.alteration import columns_to_add
from spark_rowtime.types.arguments import known_keywords, to_count, to_flag
from spark_rowtime.types.timestamps import to_micros

UNCHANGED: Any = object()
"""The default of ``maxAhead`` of :func:`alterStream`. None stands for no limit."""


@known_keywords
def alterStream(
    path: str,
    *,
    add: Any = None,
    maxAhead: str | timedelta | None = UNCHANGED,
    producers: Iterable[str] = (),
    closed: bool | None = None,
) -> None:
    """Adds columns at the end of the schema of the stream at ``path``, or changes some of its settings.

    The rows that the stream has already are null in the new columns, for every reader. Whoever has the stream open
    keeps its old schema until it is opened again: sinks go on sending rows without the new columns, and readers and
    running queries go on without them. After that, rows may still leave the new columns out, and are null there.

    Sinks that are open keep the settings with which they were opened. The next batch of a query has the new ones.

    Args:
        path: The path of the stream, as for ``createStream``.
        add: The columns: a DDL string, such as "coupon STRING", a Spark StructType or a pyarrow schema. They cannot
            be NOT NULL, and their names, compared without case, must be new. None: no columns are added.
        maxAhead: An interval: how far ahead of the clock rows and bounds may be, as for ``createStream``. None, or
            "unlimited": no limit. Left out: it stays as it is.
        producers: Names of producers that the stream waits for from now on, as for ``createStream``. If the stream is
            closed, they may join too.
        closed: If True, only ``producers`` may join from now on; whoever is attached stays so until its sink ends, or
            until ``closeProducer``. If False, anybody may. None: it stays as it is.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        InvalidOptionError: Nothing is to be changed, or a value cannot be used.
        StreamCompleteError: The stream is complete, and waits for nobody.
        SchemaMismatchError: A column is there already, is NOT NULL, or has a type that a stream cannot hold.
        StoreUnavailableError: The stream cannot be written just now.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-alter", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openSink("memory://docs-alter") as sink:
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        >>> rt.alterStream("memory://docs-alter", add="coupon STRING")
        >>> with rt.openReader("memory://docs-alter") as reader:
        ...     [train.rows.column("coupon").to_pylist() for train in reader]
        [[None]]

        A stream of forecasts takes rows of the next month:

        >>> rt.alterStream("memory://docs-alter", maxAhead="31 days")
        >>> rt.describeStream("memory://docs-alter").settings
        {'maxAhead': datetime.timedelta(days=31)}
    """
    columns, names = None if add is None else columns_to_add(add), to_names(producers)
    change = _changed(maxAhead, names, closed)
    if columns is None and change is None:
        raise InvalidOptionError(
            "Nothing is to be altered: give add, maxAhead, producers or closed.", option="add", path=path
        )
    with open_store(path) as store:
        store.alter(columns, change, names)


def _changed(max_ahead: Any, names: tuple[str, ...], closed: bool | None) -> Change | None:
    """Returns what makes the new settings of those that a stream has; None if there is nothing to change."""
    if max_ahead is UNCHANGED and not names and closed is None:
        return None
    only = closed_to(names) if closed is not None and to_flag(closed, "closed") else None
    ahead = None if max_ahead is UNCHANGED else to_max_ahead(max_ahead)

    def change(settings: StreamSettings) -> StreamSettings:
        more = None if settings.closed is None else tuple(dict.fromkeys([*settings.closed, *names]))
        most = settings.maxAhead if max_ahead is UNCHANGED else ahead
        return replace(settings, maxAhead=most, closed=more if closed is None else only)

    return change


@known_keywords
def copyStream(
    path: str, to: str, *, location: str | None = None, progress: bool = False, until: Any = None
) -> tuple[str, ...]:
    """Copies the stream at ``path`` to ``to``, as it is at one moment. Others may write and read meanwhile.

    The copy has everything that was committed up to that moment: rows, bounds, producers with their checkpoints,
    rejected rows, registered readers and settings. So it can take the place of the stream: adapters, readers and
    queries go on with it from their own checkpoints. A reader or query that is ahead of the copy is refused
    (DataLostError).

    Nobody has the copy open. The time of its leases, of ``idleTimeout`` and of ``retainAge`` stands still until the
    copy is opened. Then each producer that was attached has its lease to come back, as after a restart of the machine.

    With ``until``, the copy is the stream without what came after: the way back for one that a row or a bound far ahead
    has made useless. Its rows, its bound and who is attached are those of that event. A stream keeps the last
    checkpoint of a producer alone, which is ahead of the copy if the producer has committed since. So such a producer
    has no checkpoint in the copy, and its feed begins again. All rejected rows that are kept stay, also later ones.

    Args:
        path: The path of the stream, as for ``createStream``.
        to: The path of the copy, at which nothing may exist yet. A directory can be copied into a database, and back;
            a stream in memory only within it. If the call fails or its process ends, there is no stream there.
        location: For a copy in PostgreSQL, the URL where it keeps large trains, as for ``createStream``. None: that of
            the stream, if it has one.
        progress: If True, a terminal or a notebook shows a bar with how far the copy is.
        until: The number of the last event that is copied; or a time, as for ``sendRowtimeBound``: everything before
            the first row or bound that lies after this time. None: everything.

    Returns:
        The names of the producers that are without their checkpoint because of ``until``.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        StreamExistsError: Something exists at ``to`` already.
        StoreCorruptError: Rows of the stream are not there. Nothing was copied.
        DataLostError: Retention has removed the log up to ``until``. Nothing was copied.
        InvalidOptionError: ``until`` is no time, or there is no event of this number.
        StoreUnavailableError: The stream cannot be read, or the copy cannot be written, just now.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-copy", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openSink("memory://docs-copy") as sink:
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        ...     _ = sink.flush()
        ...     copied = rt.copyStream("memory://docs-copy", "memory://docs-copied")
        >>> rt.describeStream("memory://docs-copied").rows
        1

        A bound of the wrong year is left out:

        >>> rt.createStream("memory://docs-far", "rowtime TIMESTAMP NOT NULL, ticker STRING", maxAhead=None)
        >>> with rt.openSink("memory://docs-far", producer="nyse") as sink:
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        ...     _ = sink.flush(checkpoint="row 1")
        ...     sink.sendRowtimeBound("2926-01-05T14:31:00Z")
        >>> rt.copyStream("memory://docs-far", "memory://docs-back", until="2026-01-06T00:00:00Z")
        ('nyse',)
        >>> rt.describeStream("memory://docs-back").bound
        RowtimeBound('2026-01-05T14:30:00Z')
    """
    limit = None if until is None else to_limit(until)
    with progress_bar("copying") if progress else nullcontext() as advance:
        return tuple(copy_store(path, to, advance, None if location is None else to_location(location), limit))


def to_limit(until: Any) -> Limit:
    """Returns where a copy ends: at an event, given by a whole number, or at a time."""
    if isinstance(until, int) and not isinstance(until, bool):
        return Limit(seq=to_count(until, "until", unit="events"))
    return Limit(time=to_micros(until))


def deleteStream(path: str, *, force: bool = False) -> None:
    """Deletes the stream at ``path`` with all its rows.

    It is refused while a producer is attached, while a query or a named reader is registered that could go on, and
    while some process of the machine has the stream open; of a stream in a database the last is not known.

    Args:
        path: The path of the stream, as for ``createStream``.
        force: If True, the stream is deleted also then, and also if it is damaged. Sinks, readers and queries that
            have it open raise DataLostError at their next call.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        StreamBusyError: Somebody uses the stream; the message says who.
        StoreUnavailableError: The files cannot be removed.
        InvalidOptionError: ``path`` is a link to a stream.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-delete", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> rt.deleteStream("memory://docs-delete")
    """
    before = None
    if not to_flag(force, "force"):
        with open_store(path) as store:
            before = use_of(store)
        users = _users(describeStream(path))
        if users:
            raise StreamBusyError(
                f"{path} is still used: {'; '.join(users)}. Close or detach its producers, forget its readers "
                "(`rowtime gc --forget`), or delete it nevertheless with force=True, `rowtime delete --force`.",
                path=path,
                users=users,
            )
    delete_store(path, before)


def _users(info: StreamInfo) -> list[str]:
    """Returns who writes to the stream and who would go on reading it, a sentence each."""
    producers = [f"producer {p.name!r} is {p.status.value}" for p in info.producers if p.status in ATTACHED]
    readers = [
        f"reader {r.name!r} is registered, last seen {r.seen:%Y-%m-%dT%H:%M:%SZ}, with {r.unread} rows to read"
        for r in info.readers
        if not r.checkpointGone
    ]
    return producers + readers


def renameStream(path: str, to: str) -> None:
    """Renames the stream at ``path`` to ``to``. It stays the same stream, with all its producers and readers.

    A stream that some process of the machine has open is not renamed. Of a stream in memory or in a database this is
    known of attached producers only; readers that are open raise DataLostError then. A query that is not running goes
    on from its checkpoint when it is given the new path.

    Args:
        path: The path of the stream, as for ``createStream``.
        to: The new path, at which nothing may exist yet, on the same file system or in the same database.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        StreamExistsError: Something exists at ``to`` already.
        StreamBusyError: Somebody has the stream open.
        InvalidOptionError: ``to`` is in another database, or in another kind of store; or ``path`` is a link.
        StoreUnavailableError: The directory cannot be renamed, for example since ``to`` is on another file system.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-old-name", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> rt.renameStream("memory://docs-old-name", "memory://docs-new-name")
        >>> rt.describeStream("memory://docs-new-name").rows
        0
    """
    rename_store(path, to)


def adoptLocation(path: str) -> None:
    """Makes the database of the stream at ``path`` the owner of the objects in the stream's location.

    Objects have one owner: the database that created the stream. Another one removes none. So a restored backup on a
    test server harms nothing. Call this once the stream has moved for good: its database was
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


@dataclass(frozen=True, slots=True)
class ListedStream:
    """A stream that ``listStreams`` found.

    Attributes:
        path: The path of the stream.
        info: What ``describeStream`` reports of it; None if it cannot be read.
        error: Why it cannot be read; None if it can.
    """

    path: str
    info: StreamInfo | None
    error: RowtimeError | None


def listStreams(folder: str) -> list[ListedStream]:
    """Lists the streams in a folder, by name. Folders within it are not searched.

    A stream that is damaged, or that this version cannot read, is listed with its error; so is a directory into which
    this user may not look, since it may be one.

    Args:
        folder: A directory; a database, ``postgresql://host:port/database``; or ``memory://`` for the streams of this
            process. If the path of the latter two goes on, only the streams whose path begins so.

    Returns:
        The streams, each as a ListedStream.

    Raises:
        StreamNotFoundError: ``folder`` is no directory.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-list/orders", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> [(stream.path, stream.info.rows) for stream in rt.listStreams("memory://docs-list/")]
        [('memory://docs-list/orders', 0)]
    """
    return [_listed(path) for path in list_stores(folder, closed=True)]


def _listed(path: str) -> ListedStream:
    try:
        return ListedStream(path, describeStream(path), None)
    except RowtimeError as error:
        return ListedStream(path, None, error)


Advance = Callable[[int, int | None], object]
"""Called with how much is done, and how much there is to do; None: not known."""


@contextmanager
def progress_bar(what: str) -> Iterator[Advance | None]:
    """Shows a bar on standard error until the block ends. Yields None where there is nobody to look at it."""
    from rich.console import Console  # noqa: PLC0415  (every adapter imports this module, and few show a bar)
    from rich.progress import Progress  # noqa: PLC0415

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)

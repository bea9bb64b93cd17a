"""announceTo calls a target once for each period that the bound of a stream, a table or a topic has passed."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta, tzinfo
from http import HTTPStatus
from itertools import chain, count, repeat
from typing import Any
from uuid import uuid5

from spark_rowtime.adapter.adapter import RESTART_SECONDS, restart_seconds
from spark_rowtime.adapter.host_lock import only_host
from spark_rowtime.announce.announced import Announced
from spark_rowtime.announce.period import Period
from spark_rowtime.announce.progress import READER, Progress
from spark_rowtime.announce.table_progress import TableProgress
from spark_rowtime.announce.target import LOG, NotTakenError
from spark_rowtime.announce.targets import NamedTarget, named_target
from spark_rowtime.bounds.bound import is_end
from spark_rowtime.calendar import Calendar, Span
from spark_rowtime.errors import AnnouncementError, StoreUnavailableError
from spark_rowtime.periods import to_unit
from spark_rowtime.types.arguments import known_keywords, to_count, to_flag, to_name
from spark_rowtime.types.timestamps import from_micros, zone_named

_AGAIN = (
    "If the target answers so to a call that it has taken before, as after a lost answer, say that this status means "
    "taken: --taken 409 (taken=[409])."
)


@known_keywords
def announceTo(
    path: str,
    to: str | Callable[[Period], object],
    *,
    every: str | timedelta,
    tz: str | tzinfo | None = None,
    windowEnds: bool = False,
    start: Any = "earliest",
    follow: bool = False,
    name: str | None = None,
    key: str | None = None,
    asset: str | None = None,
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
    method: str | None = None,
    taken: Sequence[int] | None = None,
    timeout: str | timedelta | None = None,
    retries: int | None = None,
    positions: str | None = None,
    clientOptions: Mapping[str, Any] | None = None,
) -> int:
    """Calls a target once for each hour, day or other period that the bound of a stream, table or topic has passed.

    Announce what those who are called will read: of a stream that is drained into a table, the table, since the
    stream's bound is there before the rows are in the table.

    The calls are made in order, and none is left out where the bound jumps over several periods. The next call is made
    when the target has taken the one before. The position is kept under a name, as that of a registered reader, so that
    the next run continues there: in the stream, or, for a table or a topic, in another one. Each period is announced
    *at least once*: the last one again if the process died, or the connection was lost, before the answer was known.

    ``rowtime announce`` does the same from a shell.

    Args:
        path: The path of the stream; or ``delta:PATH``, ``iceberg:CATALOG.NAMESPACE.TABLE``, ``parquet:FOLDER`` or
            ``kafka://HOST:PORT/TOPIC`` that a drain, or for a table a query, writes to.
        to: ``success-file:PATTERN``, ``http:URL``, ``airflow:URL`` or ``dagster:URL``, or a function that is called
            with a ``Period``.
        every: The length of a period: whole seconds that divide a day, such as "15 minutes" or "1 hour"; "1 day";
            "1 week", from Monday; "1 month", "1 quarter" or "1 year".
        tz: The time zone of these periods, as a name or a tzinfo; None: UTC.
        windowEnds: True: the rows are results whose rowtime is the end of their window, such as ``window.end``, so that
            a row at 10:00 belongs to the hour before.
        start: Where a name that is new begins. "earliest": with the period of the first row. "latest": with the period
            that the bound has reached. A time: with its period.
        follow: If True, waits for more until the stream is complete; if False, returns at the end of the log.
        name: The name of the position. None: one that is made of the target, ``every`` and ``tz``, so that another
            target starts from the beginning.
        key: The form of the names of periods, as for ``strftime``. None: "%Y-%m-%dT%H:%M:%S", or, for Dagster,
            "%Y-%m-%d-%H:%M" for periods below a day and "%Y-%m-%d" for others.
        asset: Of Airflow the name or the URI of the asset; of Dagster its key, with slashes between the parts.
        body: The body of a request, with ``{start}``, ``{end}``, ``{key}``, ``{stream}``, ``{every}``, and
            ``{env:NAME}`` for the value of an environment variable. None: a JSON object of the first five.
        headers: Headers of a request, with the same placeholders.
        method: "POST", "PUT" or "GET". None: "POST".
        taken: Statuses of HTTP, such as 409, by which the target says that it has a call that it got before. They
            count as taken, as 2xx does. None: no others.
        timeout: How long a whole call may take. None: 30 seconds.
        positions: Of a table or a topic, the path of the stream that keeps the position. It is made if there is none,
            and may keep those of many. A stream that is announced keeps its own.
        clientOptions: Of a topic, options of Kafka's client, such as ``{"security.protocol": "SSL"}``; ``{env:NAME}``
            in a value stands for an environment variable.
        retries: How many times in a row a call is repeated that the target does not take, after 1 s, 2 s and so on up
            to 60 s, or later if the target asks for it by ``Retry-After``. None: 10 times, about 5 minutes; with
            ``follow=True`` without a limit.

    Returns:
        The number of periods that were announced.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        KafkaTopicError: There is no such topic, or it was created again.
        DataLostError: The table was created again.
        InvalidOptionError: An argument has a value that cannot be used.
        StoreUnavailableError: Another announcer with this name runs; or the table cannot be read at the start; or the
            position cannot be stored at the end of a run. The next one then announces again what this one has announced
            since it was stored last.
        AnnouncementError: The target has refused a call, or has not taken it after all repetitions.
        ExtraNotInstalledError: The target needs the pip extra ``announce``.
        Exception: Whatever a function raises. Its period is announced again by the next run.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-announce", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openSink("memory://docs-announce") as sink:
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        ...     sink.sendRowtimeBound("2026-01-05T17:00:00Z")
        >>> rt.announceTo("memory://docs-announce", lambda period: print(period.key), every="1 hour")
        2026-01-05T14:00:00
        2026-01-05T15:00:00
        2026-01-05T16:00:00
        3
    """
    options: dict[str, Any] = {"key": key, "asset": asset, "body": body, "headers": headers, "method": method}
    options |= {"taken": taken, "timeout": timeout}
    to_flag(windowEnds, "windowEnds")
    delays = repetitions(retries, to_flag(follow, "follow"))
    more: dict[str, Any] = {"ends": windowEnds, "positions": positions, "clientOptions": clientOptions}
    return sum(1 for _ in announcements(path, to, every, tz, start, follow, name, options, delays, **more))


class _WithoutLimit:
    """The seconds before each repetition of a call that is repeated until it is taken."""

    def __iter__(self) -> Iterator[float]:
        return chain(RESTART_SECONDS, repeat(RESTART_SECONDS[-1]))


def repetitions(retries: int | None, follow: bool) -> Iterable[float]:
    """The seconds before each repetition of a call."""
    if retries is None and follow:
        return _WithoutLimit()
    return restart_seconds(len(RESTART_SECONDS) if retries is None else to_count(retries, "retries"))


def announcements(
    path: str,
    to: Any,
    every: Any,
    tz: str | tzinfo | None,
    start: Any,
    follow: bool,
    name: str | None,
    options: Mapping[str, Any],
    delays: Iterable[float] = RESTART_SECONDS,
    wait: Callable[[float], object] = time.sleep,
    *,
    ends: bool = False,
    positions: str | None = None,
    clientOptions: Mapping[str, Any] | None = None,
) -> Iterator[Period]:
    """Announces as ``announceTo`` does; yields each period once it is announced and recorded.

    ``delays`` are the seconds before each repetition of a call. ``wait`` waits so many seconds.
    """
    unit, zone = to_unit(every), zone_named(tz)
    named = named_target(to, unit, options)
    label = f"{named.label}-{unit.name}{f'-{zone}' if tz else ''}" if name is None else to_name(name, "name")
    with ExitStack() as open_things:
        if hasattr(named.target, "close"):
            open_things.callback(named.target.close)
        announced = Announced(path, positions, clientOptions, wait)
        label = announced.label(label, named=name is not None)
        open_things.enter_context(_alone(announced.keeper, READER + label, wait))
        calendar = Calendar(unit, zone, merges=named.merges)
        progress = open_things.enter_context(announced.progress(calendar, READER + label, start, ends=ends))
        LOG.info("Announcing %s under the name %r", path, label)
        yield from _Announcer(path, label, progress, named, unit.name, zone).run(follow, delays, wait)


class _Announcer:
    """Announces one stream, table or topic to one target."""

    def __init__(
        self,
        path: str,
        label: str,
        progress: Progress | TableProgress,
        named: NamedTarget,
        every: str,
        zone: tzinfo,
    ) -> None:
        self._path, self._label, self._progress = path, label, progress
        self._named, self._every, self._zone = named, every, zone

    def run(self, follow: bool, delays: Iterable[float], wait: Callable[[float], object]) -> Iterator[Period]:
        """Announces up to the end of what is there; with ``follow``, until the end of time."""
        progress: Any = self._progress
        while True:
            state = progress.look()
            for span in progress.complete(state):
                period = self._period(span)
                self._call(period, iter(delays), wait)
                progress.announced(span, state)
                yield period
            if not follow or is_end(state.floor):
                progress.finish()
                return
            progress.wait(state)

    def _period(self, span: Span) -> Period:
        start, end = (_local(moment, self._zone) for moment in (span.start, span.end))
        return Period(start, end, self._named.name.of(span.clock), self._path, self._every)

    def _call(self, period: Period, delays: Iterator[float], wait: Callable[[float], object]) -> None:
        """Calls the target until it has taken the period."""
        call = str(uuid5(self._progress.id, f"{self._label} {period.every} {period.start.isoformat()}"))
        for attempt in count(1):
            try:
                return self._named.target.announce(period, call)
            except NotTakenError as error:
                delay = next(delays, None) if error.temporary else None
                if delay is None:
                    raise _failed(period, error, attempt) from None
                seconds = max(delay, error.wait)
                tries = f"attempt {attempt + 1} in {seconds:g} s"
                LOG.warning("%s of %s was not taken: %s. Next, %s", period.key, self._path, error, tries)
                wait(seconds)
        raise AssertionError


def _local(moment: int, zone: tzinfo) -> datetime:
    """The time in the zone; in UTC where it is beyond the calendar of Python there."""
    try:
        return from_micros(moment).astimezone(zone)
    except OverflowError:
        return from_micros(moment)


def _failed(period: Period, error: NotTakenError, attempts: int) -> AnnouncementError:
    tried = "refused" if not error.temporary else f"not taken in {attempts} attempt(s)"
    again = "" if error.status != HTTPStatus.CONFLICT else f" {_AGAIN}"
    return AnnouncementError(
        f"The period {period.key} of {period.stream} was {tried}: {error}. It stays the next one: once the cause is "
        f"gone, start the announcer again, and it continues there.{again}",
        stream=period.stream,
        period=period.key,
        status=error.status,
        attempts=attempts,
    )


@contextmanager
def _alone(path: str, reader: str, wait: Callable[[float], object]) -> Iterator[None]:
    """Holds the lock of an announcer, which the operating system releases when the process dies."""
    with ExitStack() as held:
        try:
            held.enter_context(only_host(path, reader, 0, wait))
        except StoreUnavailableError as error:
            if "pid" not in error.values:
                raise
            name, pid = reader.removeprefix(READER), error.values["pid"]
            raise StoreUnavailableError(
                f"The announcer {name!r} already runs on {path}, in process {pid or '(starting)'}. Two would make each "
                "call twice, in any order: end that process first, or give this one another name.",
                path=path,
                pid=pid,
            ) from None
        yield

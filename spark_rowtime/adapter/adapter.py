"""runAdapter runs an adapter in this process; ``host``, behind it, restarts it when it fails."""

import inspect
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spark_rowtime.adapter.arguments import check_names
from spark_rowtime.adapter.contract import Adapter, MultiAdapter
from spark_rowtime.adapter.host_lock import only_host
from spark_rowtime.adapter.loading import load, require_adapter, require_class
from spark_rowtime.adapter.program_errors import is_program_error
from spark_rowtime.adapter.sinks import Sinks
from spark_rowtime.bounds.clock import Status
from spark_rowtime.errors import InvalidOptionError, ProducerFencedError, RowtimeError
from spark_rowtime.producer.rowsink import openSink
from spark_rowtime.store import open_store
from spark_rowtime.store.record import ProducerInfo
from spark_rowtime.store.snapshot import HOST
from spark_rowtime.stream import createStream, require_stream
from spark_rowtime.types.arguments import to_count, unknown_option
from spark_rowtime.types.hidden import values_of
from spark_rowtime.types.short_repr import short_error, short_repr, some, traced

LOG = logging.getLogger("spark_rowtime.adapter")
RESTART_SECONDS = tuple(float(min(2**failure, 60)) for failure in range(10))
"""Seconds before each restart of an adapter that fails repeatedly; after the last one the host gives up."""
_NAMED = 3
"""The largest number of producers whose checkpoints an error names."""


def runAdapter(
    adapter: type[Adapter] | type[MultiAdapter] | str,
    path: str,
    *,
    arguments: Mapping[str, Any] | None = None,
    producer: str | None = None,
    create: bool = False,
    restarts: int = len(RESTART_SECONDS),
    **sinkOptions: Any,
) -> None:
    """Runs an adapter in this thread until its feed ends; when it fails, restarts it from its checkpoint.

    ``rowtime run`` does the same in a process of its own. After a failure the adapter is restarted after 1 s, 2 s and
    so on up to 60 s, counted again once it has got further. Errors before the first ``run`` are raised unchanged; so
    are, at any time, errors of the adapter's program, and ProducerFencedError.

    Args:
        adapter: The class, or ``"module:Class"``.
        path: The path of the stream.
        arguments: Keywords for the constructor of the class, as Python values.
        producer: The stable name of the producer. Of a MultiAdapter, which names its producers itself, it is the name
            of the adapter: one adapter of a name runs on a stream at a time. None: ``module:Class``.
        create: If True, the stream is created from the adapter's schema if it does not exist.
        restarts: How often in a row the adapter is restarted without getting further.
        sinkOptions: Keywords for ``openSink``; they override the adapter's ``sinkOptions``.

    Raises:
        StreamNotFoundError: There is no stream at ``path``, and ``create`` is False.
        SchemaMismatchError: The stream has another schema than the adapter.
        UnknownOptionError: The adapter has no argument, or its sink no option, of that name.
        InvalidOptionError: The class is no adapter, or an argument is missing.
        StoreUnavailableError: An adapter of that name runs on the stream already.
        ProducerFencedError: Another sink took a producer over.
        RowtimeError: The adapter has failed after all restarts; its own error is the cause.

    Example:
        >>> import spark_rowtime as rt
        >>> class Ticks:
        ...     schema = "rowtime TIMESTAMP NOT NULL, ticker STRING"
        ...     def __init__(self, ticker: str) -> None:
        ...         self.ticker = ticker
        ...     def run(self, sink: rt.RowSink) -> None:
        ...         sink.sendRow(("2026-01-05T14:30:00Z", self.ticker))
        >>> rt.runAdapter(Ticks, "memory://docs-runadapter", arguments={"ticker": "IBM"}, create=True)
        >>> rt.describeStream("memory://docs-runadapter").rows
        1
    """
    delays = restart_seconds(to_count(restarts, "restarts"))
    host(adapter, path, arguments=arguments, producer=producer, delays=delays, create=create, **sinkOptions)


def restart_seconds(restarts: int) -> list[float]:
    """Returns the seconds before each of so many restarts."""
    return [*RESTART_SECONDS[:restarts], *([RESTART_SECONDS[-1]] * (restarts - len(RESTART_SECONDS)))]


def host(
    adapter: type[Adapter] | type[MultiAdapter] | str,
    path: str,
    *,
    arguments: Mapping[str, Any] | None = None,
    producer: str | None = None,
    delays: Sequence[float] = RESTART_SECONDS,
    patience: float = 0,
    wait: Callable[[float], object] = time.sleep,
    create: bool = True,
    **sink_options: Any,
) -> None:
    """Runs an adapter as ``runAdapter`` does.

    An adapter whose producer is complete (``sink.close(complete=True)``) is not run again.

    ``delays`` are the seconds before each restart. ``patience`` is how many seconds it waits for another host of the
    same adapter to end, before it raises StoreUnavailableError. ``wait`` waits so many seconds.
    """
    made = load(adapter) if isinstance(adapter, str) else adapter
    require_class(made)
    spec = adapter if isinstance(adapter, str) else f"{made.__module__}:{made.__qualname__}"
    require_adapter(made, spec)
    given = dict(arguments or {})
    check_names(made, spec, given)
    name = producer or spec
    _sink_options(made, name)
    require_or_create(made, path, create=create)
    with only_host(path, name, patience, wait):
        hosted = _Host(made, path, name, given, sink_options)
        if hosted.is_complete():
            LOG.info("Adapter %s has completed its feed: there is nothing more to run", name)
        else:
            hosted.run(delays, wait)


def require_or_create(made: Any, path: str, *, create: bool) -> None:
    """Checks that the stream has the adapter's schema, or creates it.

    An adapter whose ``schema`` is None sends rows of the stream's own schema: the stream must exist.
    """
    if made.schema is None:
        open_store(path).close()
    elif create:
        createStream(path, made.schema, existOk=True)
    else:
        require_stream(path, made.schema)


def _sink_options(adapter: Any, name: str) -> dict[str, Any]:
    """The ``sinkOptions`` of an adapter or its class, after a check that they are keywords of ``openSink``."""
    options = getattr(adapter, "sinkOptions", {})
    if not isinstance(options, Mapping):
        raise InvalidOptionError(
            f"sinkOptions of adapter {name!r} must be a dict of keywords for openSink, such as "
            f"{{'lateness': '1 hour'}}, not {short_repr(options)}.",
            adapter=name,
        )
    known = sorted(inspect.signature(openSink).parameters.keys() - {"path", "producer"})
    for option in options:
        if option not in known:
            problem = f"sinkOptions of adapter {name!r} names {short_repr(option)}, which its sink does not have."
            raise unknown_option(option, known, problem)
    return dict(options)


class _Host:
    """Runs one adapter repeatedly, one run after the other."""

    def __init__(
        self, adapter: type[Any], path: str, name: str, arguments: dict[str, Any], options: dict[str, Any]
    ) -> None:
        self._adapter, self._path, self._name = adapter, path, name
        self._arguments, self._options = arguments, options
        self._running = False
        self._last: dict[str, ProducerInfo] = {}
        """The producers that the adapter has opened, as they were when last looked at."""
        self._now_opened: set[str] = set()
        self._released: set[str] = set()
        """The producers that the adapter has closed or abandoned itself: another process may have them now."""

    def run(self, delays: Sequence[float], wait: Callable[[float], object]) -> None:
        left = iter(delays)
        while True:
            try:
                return self._run_once()
            except ProducerFencedError:
                raise
            except Exception as error:
                if not self._running:
                    raise
                if is_program_error(error, self._adapter):
                    self._report(error, restarts=False)
                    error.add_note(self._not_restarted(error))
                    raise
                if self._came_further():
                    left = iter(delays)
                delay = next(left, None)
                self._report(error, restarts=delay is not None)
                if delay is None:
                    raise self._given_up(len(delays), error) from error
                told = "Adapter %s failed; restarting it in %s s. %s"
                LOG.warning(told, self._name, delay, error, exc_info=traced(error))
            wait(delay)
            self._came_further()

    def _report(self, error: Exception, *, restarts: bool) -> None:
        """Records in the stream, for who asks why it stands, that the adapter failed, and whether it is restarted.

        Whoever may read the stream sees it. So what the error says of the adapter's arguments is not in it.
        """
        told = {
            "producers": sorted(self._last),
            "error": short_error(error, values_of(self._arguments)),
            "restarts": restarts,
        }
        try:
            with open_store(self._path) as store:
                store.put_status(HOST, self._name, json.dumps(told, ensure_ascii=False))
        except Exception:
            LOG.debug("The failure of adapter %s could not be recorded", self._name, exc_info=True)

    def is_complete(self) -> bool:
        """Whether the producer of the adapter's name has declared that it never sends again."""
        known = self._look([self._name]).get(self._name)
        return known is not None and known.status is Status.COMPLETE

    def _run_once(self) -> None:
        feed = self._adapter(**self._arguments)
        self._now_opened = set()
        options = {**_sink_options(feed, self._name), **self._options}
        with Sinks(self._path, options, self._opened) as sinks:
            if hasattr(feed, "runProducers"):
                self._running = True
                try:
                    self._require_done(feed.runProducers(sinks))
                finally:
                    self._released |= self._now_opened - set(sinks.producers)
            else:
                sink = sinks.open(self._name)
                self._running = True
                self._require_done(feed.run(sink))

    def _require_done(self, returned: Any) -> None:
        """Refuses what a method with a yield, or an async one, returns: it has done nothing."""
        if not (inspect.isgenerator(returned) or inspect.isasyncgen(returned) or inspect.isawaitable(returned)):
            return
        if inspect.iscoroutine(returned) or inspect.isgenerator(returned):
            returned.close()
        raise InvalidOptionError(
            f"Adapter {self._name}: its run has a yield, or is async, so the call has done nothing. It needs an "
            "ordinary method that sends its rows to its sink; for asynchronous code, one that calls asyncio.run().",
            adapter=self._name,
        )

    def _opened(self, producer: str) -> None:
        self._now_opened.add(producer)
        self._released.discard(producer)
        self._last.update(self._look([producer]))

    def _look(self, producers: Sequence[str]) -> dict[str, ProducerInfo]:
        """The present state of the producers; without those that cannot be read just now."""
        try:
            with open_store(self._path) as store:
                found = [store.producer(name) for name in producers]
        except RowtimeError:
            return {}
        return {info.name: info for info in found if info is not None}

    def _came_further(self) -> bool:
        """Whether a producer has advanced since the last call of this method or the start of the run.

        Raises ProducerFencedError if another process holds a producer now. The adapter may have replaced that error
        by another one, and opening the sink again would fence the other process in turn.
        """
        now, before = self._look(list(self._last)), self._last
        for name, info in now.items():
            was = before[name]
            if (info.epoch, info.session) != (was.epoch, was.session) and name not in self._released:
                raise self._taken_over(was, info)
        self._last = {**before, **now}
        return any(_progress(info) != _progress(before[name]) for name, info in now.items())

    def _taken_over(self, before: ProducerInfo, now: ProducerInfo) -> ProducerFencedError:
        return ProducerFencedError(
            f"Producer {now.name!r} of adapter {self._name!r} was taken over by another process (epoch {before.epoch} "
            f"here, now {now.epoch}), so the adapter is not restarted. Stop one of the two.",
            producer=now.name,
        )

    def _not_restarted(self, error: Exception) -> str:
        return (
            f"Adapter {self._name!r} is not restarted: a {type(error).__name__} is taken for an error in its "
            "program, which a restart would meet again. Where a feed's outage raises it, catch it in run, and raise "
            "another error."
        )

    def _given_up(self, restarts: int, error: Exception) -> RowtimeError:
        checkpoints = {name: info.checkpoint for name, info in self._last.items()}
        shown = some([f"{name!r} at {checkpoint!r}" for name, checkpoint in checkpoints.items()], _NAMED)
        return RowtimeError(
            f"Adapter {self._name!r} failed again after {restarts} restarts without coming further: "
            f"{type(error).__name__}: {str(error).rstrip('.')}. Correct what it failed with, and start it again; it "
            f"continues from its checkpoints: {shown or 'none'}.",
            adapter=self._name,
            checkpoints=checkpoints,
        )


def _progress(info: ProducerInfo) -> tuple[object, ...]:
    return info.checkpoint, info.floor, info.accepted

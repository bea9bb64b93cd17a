"""Adapter: a class that owns a feed and sends it into a RowSink. ``host`` runs and restarts it."""

import importlib
import inspect
import logging
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from spark_rowtime.adapter.host_lock import only_host
from spark_rowtime.errors import (
    InvalidOptionError,
    NotSerializableError,
    ProducerFencedError,
    RowtimeError,
    UnknownOptionError,
)
from spark_rowtime.producer.rowsink import RowSink, openSink
from spark_rowtime.stream import ProducerDescription, createStream, describeStream, require_stream
from spark_rowtime.types.arguments import unknown_option
from spark_rowtime.types.short_repr import short_repr

LOG = logging.getLogger("spark_rowtime.adapter")
RESTART_SECONDS = tuple(float(min(2**failure, 60)) for failure in range(10))
"""Seconds before each restart of an adapter that fails repeatedly; after the last one the host gives up."""
PROGRAMMING_ERRORS = (
    TypeError,
    AttributeError,
    NameError,
    ImportError,
    SyntaxError,
    NotImplementedError,
    InvalidOptionError,
    UnknownOptionError,
    NotSerializableError,
)
"""Errors that recur however often an adapter is restarted: the host raises them at once."""
_KEPT_OUTPUT_LINES = 20


class Adapter(Protocol):
    """The form of a class that sends a feed into a stream. It needs no base class.

    The host instantiates the class without arguments, once per start. A class whose rows are not in order declares
    this in ``sinkOptions``, an optional class attribute: a dict of keywords for ``openSink``.

    Attributes:
        schema: A class attribute: the stream's schema, as for ``createStream``.

    Example:
        >>> import spark_rowtime as rt
        >>> class Ticks:
        ...     schema = "rowtime TIMESTAMP NOT NULL, ticker STRING"
        ...     sinkOptions = {"lateness": "1 minute"}
        ...     def run(self, sink):
        ...         sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        >>> rt.createStream("memory://docs-adapter", Ticks.schema)
        >>> with rt.openSink("memory://docs-adapter", producer="ticks", **Ticks.sinkOptions) as sink:
        ...     Ticks().run(sink)  # what a host does, without its restarts
        >>> rt.describeStream("memory://docs-adapter").bound
        RowtimeBound('2026-01-05T14:30:00Z')
    """

    schema: Any

    def run(self, sink: RowSink) -> None:
        """Sends rows and bounds until the feed ends; then it returns, and the producer leaves the stream.

        The host calls it once per instance, in its main thread. After a failure a new instance starts. It resumes
        at ``sink.checkpoint``, the last checkpoint that its predecessor passed to ``flush``.

        After the first ``flush(checkpoint=...)``, rows become visible only with the next such call, so that no row is
        repeated or lost whenever the process dies. Before that call rows become visible without ``flush``. An adapter
        that resumes therefore passes its starting point to ``flush`` before its first row.

        Args:
            sink: The sink that takes the rows and bounds; its ``checkpoint`` is None at the very first start.

        Raises:
            Exception: A failure of the feed; the host restarts the adapter, except after an error of its program,
                such as a TypeError.
        """


def load(spec: str, *, from_here: bool = True) -> type[Adapter]:
    """Imports the adapter class that ``module:Class`` names. Raises InvalidOptionError if it is not usable."""
    return load_class(spec, "an adapter", ("schema", "run"), from_here=from_here)


def load_class(spec: str, what: str, needed: Sequence[str], *, from_here: bool = True) -> type[Any]:
    """Imports the class that ``module:Class`` names, and checks that it has all ``needed`` attributes.

    ``what`` is the kind of class that error messages name. ``from_here``: modules in the current directory can be
    imported, as with ``python -m``. Raises InvalidOptionError if the class is not usable.
    """
    module, colon, name = spec.partition(":")
    if not (module and colon and name):
        raise InvalidOptionError(f"{spec!r} names no class. Write module:Class, such as my_feed:MyFeed.", spec=spec)
    if from_here:
        _put_current_directory_on_path()
    found = getattr(_import(module, spec), name, None)
    if not isinstance(found, type):
        has = f"a {type(found).__name__}" if found is not None else "nothing"
        raise InvalidOptionError(f"{spec!r} names no class: the module {module} has {has} of that name.", spec=spec)
    missing = [attribute for attribute in needed if not hasattr(found, attribute)]
    if missing:
        raise InvalidOptionError(
            f"{spec!r} is not {what}: the class has no {' and no '.join(missing)}. It needs {' and '.join(needed)}.",
            spec=spec,
            missing=missing,
        )
    return found


def _put_current_directory_on_path() -> None:
    here = str(Path.cwd())
    if "" not in sys.path and here not in sys.path:
        sys.path.insert(0, here)


def _import(module: str, spec: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise InvalidOptionError(f"{spec!r} cannot be imported: {error}. Install what it needs.") from error
        raise InvalidOptionError(
            f"{spec!r}: there is no module {error.name!r}, neither in {Path.cwd()} nor on Python's path. Start in the "
            "folder of the module, or put that on PYTHONPATH.",
            spec=spec,
        ) from None
    except Exception as error:
        raise InvalidOptionError(f"{spec!r} fails at its import: {type(error).__name__}: {error}.") from error


def host(
    adapter: str | type[Adapter],
    path: str,
    *,
    producer: str | None = None,
    delays: Sequence[float] = RESTART_SECONDS,
    patience: float = 0,
    wait: Callable[[float], object] = time.sleep,
    create: bool = True,
    **sink_options: Any,
) -> None:
    """Runs an adapter in this thread until its feed ends; when it fails, restarts it from its checkpoint.

    Errors before the first ``run`` are raised unchanged; so are, at any time, errors in the adapter's program
    (``PROGRAMMING_ERRORS``). A fenced adapter ends with ProducerFencedError and is not restarted, because another
    process has taken its place.

    Args:
        adapter: ``module:Class``, or the class.
        path: The path of the stream.
        producer: The stable name under which the adapter sends; None: the adapter's own name.
        delays: The seconds before each restart. They begin anew once the adapter has got further than at its last
            start. After the last one, RowtimeError is raised from the adapter's error.
        patience: The seconds to wait for another host of the same producer to end, before StoreUnavailableError is
            raised.
        wait: The function that waits so many seconds.
        create: If True, the stream is created from the adapter's schema if it does not exist; if False, a missing
            stream raises StreamNotFoundError.
        sink_options: Keywords for ``openSink``; they override the adapter's ``sinkOptions``.
    """
    made = load(adapter) if isinstance(adapter, str) else adapter
    name = producer or (adapter if isinstance(adapter, str) else f"{made.__module__}:{made.__qualname__}")
    options = {**_sink_options(made, name), **sink_options}
    if create:
        createStream(path, made.schema, existOk=True)
    else:
        require_stream(path, made.schema)
    with only_host(path, name, patience, wait):
        _Host(made, path, name, options).run(delays, wait)


def _sink_options(adapter: type[Adapter], name: str) -> dict[str, Any]:
    """The adapter's ``sinkOptions``, after a check that they are keywords of ``openSink``."""
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

    def __init__(self, adapter: type[Adapter], path: str, producer: str, options: dict[str, Any]) -> None:
        self._adapter, self._path, self._producer, self._options = adapter, path, producer, options
        self._start: ProducerDescription | None = None

    def run(self, delays: Sequence[float], wait: Callable[[float], object]) -> None:
        left = iter(delays)
        while True:
            try:
                return self._run_once()
            except ProducerFencedError:
                raise
            except Exception as error:
                if self._start is None:
                    raise
                if isinstance(error, PROGRAMMING_ERRORS):
                    error.add_note(self._not_restarted(error))
                    raise
                if self._came_further():
                    left = iter(delays)
                delay = next(left, None)
                if delay is None:
                    raise self._given_up(len(delays), error) from error
                LOG.warning("Adapter %s failed; restarting it in %s s.", self._producer, delay, exc_info=error)
            wait(delay)
            self._came_further()

    def _run_once(self) -> None:
        feed = self._adapter()
        with openSink(self._path, producer=self._producer, **self._options) as sink:
            self._start = self._look()
            feed.run(sink)

    def _look(self) -> ProducerDescription | None:
        """The present state of the producer; None if the stream cannot be read just now."""
        try:
            known = describeStream(self._path).producers
        except RowtimeError:
            return None
        return next((p for p in known if p.name == self._producer), None)

    def _came_further(self) -> bool:
        """Whether the producer has advanced since the last call of this method or the start of the run.

        Raises ProducerFencedError if another process holds the producer now. The adapter may have replaced that error
        by another one, and opening the sink again would fence the other process in turn.
        """
        now, before = self._look(), self._start
        if now is None or before is None:
            return False
        if now.epoch != before.epoch:
            raise ProducerFencedError(
                f"Adapter {self._producer!r} was taken over by another process (epoch {before.epoch} here, now "
                f"{now.epoch}), so it is not restarted. Look for the other one.",
                producer=self._producer,
            )
        self._start = now
        return (now.checkpoint, now.bound, now.accepted) != (before.checkpoint, before.bound, before.accepted)

    def _not_restarted(self, error: Exception) -> str:
        return (
            f"Adapter {self._producer!r} is not restarted: a {type(error).__name__} is taken for an error in its "
            "program, which a restart would meet again. Where a feed's outage raises it, catch it in run, and raise "
            "another error."
        )

    def _given_up(self, restarts: int, error: Exception) -> RowtimeError:
        checkpoint = self._start.checkpoint if self._start is not None else None
        return RowtimeError(
            f"Adapter {self._producer!r} failed again after {restarts} restarts without coming further: "
            f"{type(error).__name__}: {error}. Its checkpoint is {checkpoint!r}; mend what it failed with and "
            "start it again, it goes on from there.",
            producer=self._producer,
            checkpoint=checkpoint,
        )


def spawn(spec: str, path: str) -> "AdapterProcess":
    """Hosts an adapter in a process of its own that ends with this one; Spark's source calls it.

    The stream must exist. The process has the same module search path as this one, in the same order. The caller
    calls ``check()`` from time to time, and ``stop()`` at the end.
    """
    return AdapterProcess(spec, path)


class AdapterProcess:
    """A child process that hosts an adapter. It ends when its standard input ends, thus also when this process dies.

    A thread copies the child's output to this process's stderr, and keeps the last lines for ``check``.
    """

    def __init__(self, spec: str, path: str) -> None:
        self._spec = spec
        self._last: deque[str] = deque(maxlen=_KEPT_OUTPUT_LINES)
        self._process = subprocess.Popen(  # noqa: S603  (no shell; Spark's source has checked that the class may be run)
            [sys.executable, "-P", "-m", "spark_rowtime.cli", "run", spec, path, "--until-stdin-ends"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
            text=True,
            errors="replace",
        )
        self._printer = threading.Thread(target=self._pass_on, name=f"rowtime-{spec}", daemon=True)
        self._printer.start()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def check(self) -> None:
        """Raises RowtimeError, with the last output, if the process has failed; the end of the feed is no failure."""
        code = self._process.poll()
        if code:
            self._printer.join(timeout=1)
            output = "".join(self._last).strip() or "(nothing)"
            raise RowtimeError(
                f"The process of adapter {self._spec!r} ended with code {code}. It said last:\n{output}",
                adapter=self._spec,
                code=code,
            )

    def stop(self, grace: float = 10) -> None:
        """Ends the adapter, whose producer stays attached; kills the process after ``grace`` seconds."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._printer.join(timeout=1)

    def _pass_on(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._last.append(line)
                sys.stderr.write(line)

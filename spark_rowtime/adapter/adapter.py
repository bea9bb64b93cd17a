"""Adapter: a class that owns a feed and sends it into a RowSink; how it is hosted and restarted."""

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
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Protocol

from spark_rowtime.adapter.host_lock import only_host
from spark_rowtime.errors import InvalidOptionError, ProducerFencedError, RowtimeError, UnknownOptionError
from spark_rowtime.producer.rowsink import RowSink, openSink
from spark_rowtime.stream import ProducerDescription, createStream, describeStream, require_stream
from spark_rowtime.types.short_repr import short_repr

LOG = logging.getLogger("spark_rowtime.adapter")
RESTART_SECONDS = tuple(float(min(2**failure, 60)) for failure in range(10))
"""Seconds before each restart of an adapter that fails again and again; after the last it is given up."""
PROGRAMMING_ERRORS = (
    TypeError,
    AttributeError,
    NameError,
    ImportError,
    SyntaxError,
    NotImplementedError,
    InvalidOptionError,
    UnknownOptionError,
)
"""Errors that an adapter meets again however often it is restarted: they end it at once."""
_KEPT_OUTPUT_LINES = 20


class Adapter(Protocol):
    """A feed. Its class is made without arguments, once per start; it needs no base class.

    ``schema``, an attribute of the class: the stream's, as for ``createStream``. A class whose rows are
    not in order says so in ``sinkOptions``, a dict of keywords for ``openSink`` (it need not have one).
    """

    schema: Any

    def run(self, sink: RowSink) -> None:
        """Sends rows and bounds until the feed ends; then returns, and the producer leaves the stream.

        Called once per instance, in the main thread of the host. After a failure a new instance
        starts: it resumes at ``sink.checkpoint``, what its predecessor last gave to ``flush``.

        From its first ``flush(checkpoint=...)`` on rows become visible with the next one alone, so that a
        death at any moment repeats none and loses none. Before it they do so by themselves: an adapter that
        resumes gives its starting point to ``flush`` before its first row.
        """


def load(spec: str, *, from_here: bool = True) -> type[Adapter]:
    """The adapter class that ``module:Class`` names; InvalidOptionError says what is wrong with it."""
    return load_class(spec, "an adapter", ("schema", "run"), from_here=from_here)


def load_class(spec: str, what: str, needed: Sequence[str], *, from_here: bool = True) -> type[Any]:
    """The class that ``module:Class`` names, which has all ``needed`` attributes; ``what`` it is to be.

    ``from_here``: the current directory is importable, as for ``python -m``.
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

    - ``adapter``: ``module:Class``, or the class.
    - ``producer``: the stable name that it sends under; the adapter's own by default.
    - ``delays``: seconds before each restart. Once the adapter has come further than at its last
      start they begin anew; after the last one RowtimeError is raised from what it failed with.
    - ``patience``: seconds to wait for another host of the same producer to end, before
      StoreUnavailableError is raised.
    - ``create``: the stream is created from the adapter's schema if it is not there; False: StreamNotFoundError.
    - ``sink_options``: as for ``openSink``; they go before the adapter's ``sinkOptions``.

    What fails before the first ``run`` is raised as it is, and so are errors in the adapter's program
    (``PROGRAMMING_ERRORS``) at any time. A fenced adapter ends with ProducerFencedError and is not
    restarted: another process has its place.
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
    """The adapter's ``sinkOptions``, which are keywords of openSink."""
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
            near = get_close_matches(str(option), known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UnknownOptionError(
                f"sinkOptions of adapter {name!r} names {short_repr(option)}, which its sink does not have.{hint} "
                f"There are {', '.join(known)}.",
                option=str(option),
            )
    return dict(options)


class _Host:
    """The runs of one adapter, one after the other."""

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
        """Where the producer stands; None where that cannot be seen just now."""
        try:
            known = describeStream(self._path).producers
        except RowtimeError:
            return None
        return next((p for p in known if p.name == self._producer), None)

    def _came_further(self) -> bool:
        """Since the last look. Raises ProducerFencedError where another process has the producer now.

        The adapter may have turned that error into another; opening again would fence back.
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

    The stream is there. The process has this one's path of modules, in that order. The caller looks at
    ``check()`` from time to time, and calls ``stop()`` in the end.
    """
    return AdapterProcess(spec, path)


class AdapterProcess:
    """A child process that hosts an adapter. It ends when its standard input does, so also when we die.

    What it prints goes to this process's stderr, by a thread; the last lines are kept for ``check``.
    """

    def __init__(self, spec: str, path: str) -> None:
        self._spec = spec
        self._last: deque[str] = deque(maxlen=_KEPT_OUTPUT_LINES)
        self._process = subprocess.Popen(  # noqa: S603  (no shell; Spark's source has looked whether the class may be run)
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
        """RowtimeError, with what it printed last, if it has died; one whose feed has ended is fine."""
        code = self._process.poll()
        if code:
            self._printer.join(timeout=1)
            said = "".join(self._last).strip() or "(nothing)"
            raise RowtimeError(
                f"The process of adapter {self._spec!r} ended with code {code}. It said last:\n{said}",
                adapter=self._spec,
                code=code,
            )

    def stop(self, grace: float = 10) -> None:
        """Lets the adapter end, which keeps its producer attached; kills it after ``grace`` seconds."""
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

"""Call: one call in a thread of its own, which may never return, as one to a database that stands still."""

import threading
import time
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future
from itertools import islice
from typing import Generic, ParamSpec, TypeVar

from spark_rowtime.errors import StoreUnavailableError

ANSWER_SECONDS = 5.0
"""How long an answer of the server waits for one of a stream. Prometheus waits 10 s for all of them by default."""
PATIENCE_SECONDS = 0.5
"""How long others wait for one of several calls. They wait for it no more once it has taken so long."""
CALLS_AT_ONCE = 16
MOST_CALLS = 100
"""How many calls of one kind that do not return hold a thread."""
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_Thing = TypeVar("_Thing")


class Call(Generic[_Result]):
    """One call, which has begun. The process can end while it waits."""

    def __init__(self, function: Callable[[], _Result], ended: Callable[[], object] = lambda: None) -> None:
        """``ended`` is called before the result is there."""
        self._function, self._ended, self._began = function, ended, time.monotonic()
        self._future = Future[_Result]()
        self.cpu_seconds = 0.0
        """The CPU time that it took."""
        threading.Thread(target=self._run, daemon=True, name="rowtime-serve").start()

    def _run(self) -> None:
        try:
            result = self._function()
        except BaseException as error:  # noqa: BLE001  (raised by ``result``)
            self._ended()
            self._future.set_exception(error)
        else:
            self.cpu_seconds = time.thread_time()
            self._ended()
            self._future.set_result(result)

    def done_within(self, seconds: float) -> bool:
        """Waits until so many seconds after its beginning, or until it is done. Returns whether it is."""
        left = self._began + seconds - time.monotonic()
        try:
            self._future.exception(max(left, 0))
        except TimeoutError:
            return False
        return True

    def lasts(self, seconds: float) -> bool:
        """Returns whether it began so many seconds ago and is not done."""
        return time.monotonic() >= self._began + seconds and not self._future.done()

    def result(self) -> _Result:
        """Returns, or raises, what the call did; StoreUnavailableError if that is not there in ANSWER_SECONDS."""
        if not self.done_within(ANSWER_SECONDS):
            raise StoreUnavailableError(NO_ANSWER)
        return self._future.result()


def begun(
    things: Iterable[_Thing], begin: Callable[[_Thing], Call[_Result] | None]
) -> list[tuple[_Thing, Call[_Result] | None]]:
    """Begins a call for each, some at a time: those that do not answer are waited for together, PATIENCE_SECONDS."""
    found = list[tuple[_Thing, Call[_Result] | None]]()
    rest = iter(things)
    while some := [(thing, begin(thing)) for thing in islice(rest, CALLS_AT_ONCE)]:
        for _, call in some:
            if call is not None:
                call.done_within(PATIENCE_SECONDS)
        found += some
    return found


NO_ANSWER = (
    "It has not answered yet. Perhaps its database stands still or cannot be reached. It is shown once it answers."
)


class SharedCalls(Generic[_Given, _Result]):
    """Calls of one function by any number of threads.

    Law (*one at a time*; tests/serve/test_call.py): while a call has not returned, whoever makes the same one waits for
    it. So a database that stands still holds one thread, and not one for each request.
    """

    def __init__(self, function: Callable[_Given, _Result]) -> None:
        self._function = function
        self._lock, self._under_way = threading.Lock(), dict[Hashable, Call[_Result]]()

    def begin(self, *given: _Given.args, **named: _Given.kwargs) -> Call[_Result]:
        """Returns the call with these arguments that is under way, or a new one."""
        key = (given, tuple(named.items()))
        with self._lock:
            if key not in self._under_way:
                if len(self._under_way) >= MOST_CALLS:
                    raise StoreUnavailableError(f"{MOST_CALLS} calls have not been answered. Try again.")
                self._under_way[key] = Call(lambda: self._function(*given, **named), lambda: self._forget(key))
            return self._under_way[key]

    def _forget(self, key: Hashable) -> None:
        with self._lock:
            del self._under_way[key]

    def __call__(self, *given: _Given.args, **named: _Given.kwargs) -> _Result:
        """Does what the function does. Raises StoreUnavailableError, too, if it takes longer than ANSWER_SECONDS."""
        return self.begin(*given, **named).result()

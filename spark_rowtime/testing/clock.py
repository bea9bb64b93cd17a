"""TestClock: the wall clock of the streams of a test."""

from spark_rowtime.store.base import Store
from spark_rowtime.store.steady_clock import Reading, machine_reading
from spark_rowtime.types.timestamps import to_micros, wall_clock


class TestClock:
    """Stands still at the time of its start, in microseconds, until ``advance`` moves it.

    The clock of leases and idleness is the machine's, shifted by as much: other processes have the same stream open.
    """

    __test__ = False  # pytest collects classes whose names begin with Test

    def __init__(self, now: object = None) -> None:
        """``now``: the time at the start; None: the machine's."""
        self._start = wall_clock() if now is None else to_micros(now)
        self._advanced_micros = 0

    def advance(self, micros: int) -> None:
        """Lets so many microseconds pass."""
        self._advanced_micros += micros

    def drive(self, store: Store) -> None:
        """Gives this clock to a store that was opened."""
        store.now, store.steady = self.now, self._steady

    def now(self) -> int:
        """The time in microseconds."""
        return self._start + self._advanced_micros

    def _steady(self) -> Reading:
        machine = machine_reading()
        return machine._replace(micros=machine.micros + self._advanced_micros)

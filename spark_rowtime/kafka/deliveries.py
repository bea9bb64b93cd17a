"""Deliveries: which messages a producer has handed to its client, and up to where the broker has them."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

OnDelivery = Callable[[Any, Any], object]


class Deliveries:
    """The messages on their way to one topic, in generations, and the end of those that have arrived.

    A bound begins a generation; it is about all earlier ones. Thread-safe: callbacks come in the thread that polls.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = 0
        self._on_their_way: Counter[int] = Counter()
        self._ends: dict[int, int] = {}
        self._failed: list[str] = []
        self._back = self._has_told = self._is_unplaced = False

    def sent(self, on_delivery: OnDelivery | None) -> tuple[int, OnDelivery]:
        """Counts a message; returns its generation, and the callback for its delivery."""
        with self._lock:
            self._on_their_way[self._generation] += 1
            return self._generation, partial(self._arrived, self._generation, on_delivery)

    def not_sent(self, generation: int) -> None:
        """Takes back a message that the client has not taken."""
        with self._lock:
            self._on_their_way[generation] -= 1

    def _arrived(self, generation: int, on_delivery: OnDelivery | None, error: Any, message: Any) -> None:
        with self._lock:
            self._on_their_way[generation] -= 1
            if error is not None:
                self._failed.append(f"{error.name()}: {error.str()}")
            elif message.offset() is None:
                self._back = self._is_unplaced = True
            else:
                self._has_told = True
                partition, end = message.partition(), message.offset() + 1
                self._back |= end <= self._ends.get(partition, 0)
                self._ends[partition] = max(end, self._ends.get(partition, 0))
        if on_delivery is not None:
            on_delivery(error, message)

    def begin(self) -> int:
        """Begins a generation; returns the one before it."""
        with self._lock:
            self._generation += 1
            return self._generation - 1

    def waiting(self, generation: int) -> int:
        """Returns how many messages up to ``generation`` are on their way."""
        with self._lock:
            for old in [g for g, count in self._on_their_way.items() if not count and g != self._generation]:
                del self._on_their_way[old]
            return sum(count for g, count in self._on_their_way.items() if g <= generation)

    def take_failed(self) -> list[str]:
        """Returns what became of the messages that were not delivered, and forgets it."""
        with self._lock:
            failed, self._failed = self._failed, []
            return failed

    @property
    def tells_no_offsets(self) -> bool:
        """Whether messages have arrived, but the offset of none is known: the broker does not tell them (acks=0)."""
        with self._lock:
            return self._is_unplaced and not self._has_told

    def take_back(self) -> bool:
        """Returns whether the ends are not those of the messages, and forgets it.

        So it is if a message came before one that had arrived, which a new topic of the same name explains; or if its
        offset is not known, as where an idempotent producer has sent it again and the broker had it already.
        """
        with self._lock:
            back, self._back = self._back, False
            return back

    def reach(self, ends: Mapping[int, int]) -> None:
        """Counts everything below ``ends`` as arrived."""
        with self._lock:
            self._ends |= {p: max(end, self._ends.get(p, 0)) for p, end in ends.items()}

    def ends(self) -> dict[int, int]:
        """Returns by partition the offset after the last message that has arrived."""
        with self._lock:
            return dict(self._ends)

"""Floors: the least rowtimes that a producer has promised, has committed, and must respect."""

from spark_rowtime.bounds.bound import stronger


class Floors:
    """The floors of one producer, in microseconds since the epoch. None is below all of them; none ever falls.

    ``committed``
        The producer's own floor in the store, after its last commit.
    ``own``
        The producer's own floor after all that was taken; the next commit makes it ``committed``. Bounds and rows
        raise it, the latter as the declared disorder implies.
    ``promised``
        The part of ``own`` that this sink has promised itself, by a bound or by rows in order: a bound below it is a
        BoundRegressionError. It is None in a new sink, so that an adapter that takes a producer over may repeat
        earlier bounds, and ``lateness`` and ``kSort`` do not raise it.
    ``in_force``
        The floor below which a row is late: the stronger of ``own`` and the stream's floor, as far as it is known from
        joining, from commits, and from joining again.

    Law: ``committed`` <= ``own`` <= ``in_force``, and ``promised`` <= ``own``. There is a fifth floor, the lower limit
    of the fast path in RowBuffer: it begins as ``in_force`` and, where each row implies a bound, follows the rows. The
    other floors lag behind it until ``Outbox.end_fast_path``.

    Example:
        >>> floors = Floors(stored=None, stream=10)
        >>> floors.promise(20)
        >>> floors.imply(25, promised=False)
        >>> floors.committed, floors.own, floors.promised, floors.in_force
        (None, 25, 20, 25)
    """

    def __init__(self, stored: int | None, stream: int | None) -> None:
        """``stored``: the producer's own floor in the store; ``stream``: the stream's floor."""
        self.committed = self.own = stored
        self.promised: int | None = None
        self.in_force = stronger(stored, stream)

    @property
    def pending(self) -> bool:
        """Whether ``own`` is not committed."""
        return self.own != self.committed

    def promise(self, floor: int) -> None:
        """Records a bound that was sent."""
        self.imply(floor, promised=True)

    def imply(self, floor: int, *, promised: bool) -> None:
        """Records the floor that rows imply. ``promised``: whether a later bound below it is an error."""
        if promised and (self.promised is None or self.promised < floor):
            self.promised = floor
        if self.own is None or self.own < floor:
            self.own = floor
        if self.in_force is None or self.in_force < floor:
            self.in_force = floor

    def learn(self, stream: int | None) -> None:
        """Records the stream's floor."""
        self.in_force = stronger(self.in_force, stream)

    def drop_pending(self) -> None:
        """Takes back what is not committed, for a sink that takes no more rows."""
        self.own = self.committed

"""Prefetch: reads the trains that a reader is about to read in few round trips."""

from collections.abc import Sequence

from spark_rowtime.store.commits import Slice

PREFETCH_BYTES, PREFETCH_TRAINS = 4 << 20, 256
"""How many bytes, and how many trains, one round trip reads beyond the train that is asked for."""


class Prefetch:
    """The trains of the last ``slices``, and those of them whose bytes were read but not handed out yet.

    If several threads read, one makes another forget what was read ahead, which then costs a round trip more.
    """

    def __init__(self) -> None:
        self._pieces: list[Slice] = []
        self._places: dict[int, int] = {}
        self._ready: dict[int, Slice] = {}

    def expect(self, pieces: Sequence[Slice]) -> None:
        """Notes which trains are likely to be read next, in this order."""
        self._pieces = list(pieces)
        self._places = {piece.seq: place for place, piece in enumerate(pieces)}
        self._ready = {}

    def next(self, piece: Slice) -> list[Slice]:
        """Returns ``piece`` and the trains that follow it, as many as one round trip reads."""
        start = self._places.get(piece.seq)
        if start is None:
            return [piece]
        found, size = [piece], 0
        for later in self._pieces[start + 1 : start + PREFETCH_TRAINS]:
            size += later.size
            if size > PREFETCH_BYTES:
                break
            found.append(later)
        return found

    def keep(self, pieces: Sequence[Slice]) -> None:
        """Keeps trains whose bytes were read, in place of all earlier ones."""
        self._ready = {piece.seq: piece for piece in pieces}

    def take(self, seq: int) -> Slice | None:
        """Returns the train of this number, if its bytes are kept, and keeps it no longer."""
        return self._ready.pop(seq, None)

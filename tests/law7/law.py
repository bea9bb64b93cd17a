"""What must hold between a batch, a streamed result with all bounds, and one with fewer."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from tests.law7.streamed import Place, Rows, Step


class BoundsChangedTheResultError(AssertionError):
    """Bounds changed the result, or made it appear later."""


def total(steps: Sequence[Step]) -> Rows:
    """All rows."""
    return sum((step.rows for step in steps), Counter())


def same(name: str, steps: Sequence[Step], batch: Rows) -> None:
    """Checks that the rows are those of the batch, as a multiset."""
    missing, extra = batch - total(steps), total(steps) - batch
    if missing or extra:
        raise BoundsChangedTheResultError(f"{name}: missing {show(missing)}, too many {show(extra)}")


def never_later(full: Sequence[Step], fewer: Sequence[Step], lag: int = 0) -> None:
    """Checks that all rows that fewer bounds have released at a place of the sources, all bounds have released, too.

    ``lag``: the number of batches after that place in which they may still do so, up to the end of the poll.
    """
    out = list(accumulate((step.rows for step in full), lambda some, more: some + more))
    so_far: Rows = Counter()
    for step in fewer:
        so_far = so_far + step.rows
        later = so_far - out[batches_behind(full, first_beyond(full, step.at_most), lag)]
        if later:
            raise BoundsChangedTheResultError(f"at {step.at_most} only without bounds: {show(later)}")


def batches_behind(steps: Sequence[Step], number: int, lag: int) -> int:
    """The step that is ``lag`` batches behind another one, or the end of its poll."""
    rest = range(number, min(number + lag + 1, len(steps)))
    return next((n for n in rest if steps[n].ends_poll), rest[-1])


def first_beyond(steps: Sequence[Step], place: Place) -> int:
    """The last of the steps that end where the first step that has surely read up to ``place`` ends."""
    first = next(n for n, step in enumerate(steps) if reached(step.surely, place))
    same_end = [n for n in range(first, len(steps)) if steps[n].at_most == steps[first].at_most]
    return same_end[-1]


def reached(surely: Place, place: Place) -> bool:
    """Whether ``surely`` is at or beyond ``place`` in each source."""
    return all(a[0] >= b[0] and a[1] >= b[1] for a, b in zip(surely, place, strict=True))


def earlier(full: Sequence[Step], fewer: Sequence[Step]) -> int:
    """The number of rows that came out at an earlier poll because of the bounds."""
    ahead = 0
    by_poll = {step.at_most: so_far for step, so_far in running(fewer)}
    new: Rows = Counter()
    for step in full:
        new = new + step.rows
        if not step.rows and step.at_most in by_poll:
            ahead += (new - by_poll[step.at_most]).total()
            new = Counter()
    return ahead


def running(steps: Sequence[Step]) -> list[tuple[Step, Rows]]:
    """Each step with all rows that have come out up to it."""
    return list(zip(steps, accumulate((step.rows for step in steps), lambda some, more: some + more), strict=True))


def show(rows: Rows) -> str:
    """Sorted, with counts where they are not 1."""
    return str(sorted((row if n == 1 else (row, n) for row, n in rows.items()), key=str))

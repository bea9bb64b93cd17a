"""The calls at which a suite kills a process."""


def kill_points(calls: int, kills: int) -> list[tuple[int, bool]]:
    """At most ``kills`` calls out of so many, evenly spread; alternately before the call takes place and after it.

    Example:
        >>> kill_points(9, 3)
        [(1, True), (5, False), (9, True)]
        >>> kill_points(2, 5)
        [(1, True), (2, False)]
    """
    some = min(calls, kills)
    step = (calls - 1) / max(some - 1, 1)
    return [(1 + round(step * number), number % 2 == 0) for number in range(some)]

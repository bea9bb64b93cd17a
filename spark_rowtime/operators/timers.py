"""The floor that a state function is given, and the one timer of each of its groups."""

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from spark_rowtime.spark.output_bound import local_property

INPUT_FLOOR = "rowtime.inputFloor"
"""The local property in which the extension stores the exact floor for the watermark of operators on raw times."""


def batch_floor(watermark_ms: int) -> int:
    """Returns the least rowtime that a later row may have, from the operator's watermark and the local property.

    Spark's watermark W is in whole milliseconds below the floor, so the floor is above W * 1000. This is
    exact for times in whole milliseconds. The local property has the exact microseconds. It is used only if
    it belongs to this watermark, because an operator above another one may have a weaker watermark.
    """
    exact = local_property(INPUT_FLOOR)
    if exact is not None and (int(exact) - 1) // 1000 == watermark_ms:
        return int(exact)
    return max(0, watermark_ms) * 1000 + 1


def due_ms(floor: int) -> int:
    """Returns the first watermark, in milliseconds, at which ``floor`` may have been reached."""
    return (floor - 1) // 1000


def wake_at(handle: StatefulProcessorHandle, floor: int | None, fired: int | None) -> None:
    """Sets the group's only timer, to ``floor``, or none.

    Spark deletes the timer that fired after this call, so its time is not used again.
    """
    for old in list(handle.listTimers()):
        if old != fired:
            handle.deleteTimer(old)
    if floor is not None:
        at = due_ms(floor)
        handle.registerTimer(at - 1 if at == fired else at)

"""Computes the floor of a batch in microseconds, inside a state function."""

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

"""The floor of a batch in microseconds, inside a state function."""

from spark_rowtime.spark.output_bound import local_property

INPUT_FLOOR = "rowtime.inputFloor"
"""The local property in which the extension puts the floor behind the watermark of operators on raw times."""


def batch_floor(watermark_ms: int) -> int:
    """The least rowtime that a later row may have, from the operator's watermark and the local property.

    Spark's watermark is a whole ms below the floor: with W the floor is above W * 1000, which is
    exact for times of whole milliseconds. The property has the rest, and counts where it belongs to
    this watermark: an operator above another one may have a weaker one.
    """
    said = local_property(INPUT_FLOOR)
    if said is not None and (int(said) - 1) // 1000 == watermark_ms:
        return int(said)
    return max(0, watermark_ms) * 1000 + 1


def due_ms(floor: int) -> int:
    """The watermark at which ``floor`` may have been reached, never later."""
    return (floor - 1) // 1000

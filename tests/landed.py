"""What a stream has."""

from typing import Any

import spark_rowtime as rt


def landed(path: str, column: str = "n", order: str = "arrival") -> list[Any]:
    """The values of a column in all rows that a reader gets."""
    with rt.openReader(path, order=order) as reader:
        return [value for train in reader for value in train.rows.column(column).to_pylist()]

"""Python imports this when it starts, in the processes of `make test`: they look for garbage less often.

What they look through are the modules of PySpark, PyArrow and spark_rowtime, again and again: a seventh of the
processor time of a test with a query. `make test-long` leaves Python as it is.
"""

import gc
import sys

ALLOCATIONS = 50_000
"""More than imports make, so that none of them starts a collection."""

gc.set_threshold(ALLOCATIONS)

if "pyspark.daemon" in sys.orig_argv:
    collect = gc.collect

    def collect_once(generation: int = 2) -> int:
        """Looks only at what has come since the last time. PySpark's workers collect after each task."""
        found = collect(generation)
        gc.freeze()
        return found

    gc.collect = collect_once

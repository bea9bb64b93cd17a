"""Python imports this when it starts, in the processes of the jobs of tests.

They look for garbage less often: what they look through are the modules of PySpark, PyArrow and spark_rowtime, again
and again, a seventh of the processor time of a test with a query. And what Spark starts has its imports already.
"""

import gc
import os
import sys

ALLOCATIONS = 50_000
"""More than imports make, so that none of them starts a collection."""
RUN = "ROWTIME_TEST_RUN"
"""The variable with the process id of scripts/run_tests.py."""

gc.set_threshold(ALLOCATIONS)

if RUN in os.environ and sys.platform == "linux" and "".join(sys.orig_argv[2:3]).startswith("pyspark."):
    import forked

    forked.work_in_child(os.environ[RUN])

"""An adapter hosted by a Spark query: ``option("adapter", "my_feed:MyFeed")``."""

import os

from spark_rowtime.adapter.adapter import load
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.spark.session import ADAPTERS, ADAPTERS_VARIABLE
from spark_rowtime.stream import createStream


def ensure_stream(adapter: str, path: str) -> None:
    """Creates the stream at ``path`` with the adapter's schema, if it does not exist."""
    require_allowed(adapter)
    createStream(path, load(adapter, from_here=False).schema, existOk=True)


def require_allowed(adapter: str) -> None:
    """Raises InvalidOptionError unless the driver's environment names the adapter.

    Anyone who may write SQL may write ``OPTIONS (adapter=...)`` and ``SET``. A Python source receives its options, but
    learns neither who set them nor the session's configuration. The environment of its process is that of the JVM,
    which no SQL can change.
    """
    allowed = {name.strip() for name in os.environ.get(ADAPTERS_VARIABLE, "").split(",")} - {""}
    if adapter in allowed:
        return
    raise InvalidOptionError(
        f"The adapter {adapter!r} is not allowed to run beside this driver's queries. It would be imported there, and "
        f"SQL can name it, too. Allowed are: {', '.join(sorted(allowed)) or 'none'}. Before the JVM starts, write "
        f"rt.configure(SparkSession.builder.config({ADAPTERS!r}, {adapter!r})), with a comma between several; under "
        f"spark-submit, and for a Spark Connect server, set {ADAPTERS_VARIABLE} in the driver's environment. Or host "
        f"it by itself: rowtime run {adapter} STREAM.",
        option="adapter",
        adapter=adapter,
    )

"""An adapter hosted by a Spark query: ``option("adapter", "my_feed:MyFeed")``."""

import os
from collections.abc import Mapping

from spark_rowtime.adapter.adapter import require_or_create
from spark_rowtime.adapter.arguments import from_texts, in_any_case
from spark_rowtime.adapter.loading import load
from spark_rowtime.adapter.process import AdapterProcess
from spark_rowtime.adapter.search_path import move_current_folder_back
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.spark.session import ADAPTERS, ADAPTERS_VARIABLE


def ensure_stream(adapter: str, path: str, arguments: Mapping[str, str]) -> None:
    """Creates the stream at ``path`` with the adapter's schema, if it does not exist; checks the arguments first.

    A class may have ``require_allowed``, which refuses arguments that would import or open what is not allowed.
    """
    allowed = require_allowed(adapter)
    move_current_folder_back()
    made = load(adapter, from_here=False)
    texts = in_any_case(made, arguments)
    if hasattr(made, "require_allowed"):
        made.require_allowed(texts, allowed)
    from_texts(made, adapter, texts)
    require_or_create(made, path, create=True)


def start_adapter(adapter: str, path: str, arguments: Mapping[str, str], producer: str | None) -> AdapterProcess:
    """Starts the process of the adapter, with arguments whose names may be in another case."""
    named = in_any_case(load(adapter, from_here=False), arguments) if arguments else {}
    return AdapterProcess(adapter, path, named, producer)


def require_allowed(adapter: str) -> set[str]:
    """Returns what the driver's environment allows. Raises InvalidOptionError unless that names the adapter.

    Anyone who may write SQL may write ``OPTIONS (adapter=...)`` and ``SET``. A Python source receives its options, but
    learns neither who set them nor the session's configuration. The environment of its process is that of the JVM,
    which no SQL can change.
    """
    allowed = allowed_names()
    if adapter in allowed:
        return allowed
    raise InvalidOptionError(
        f"The adapter {adapter!r} is not allowed to run beside this driver's queries. It would be imported there, and "
        f"SQL can name it, too. Allowed are: {', '.join(sorted(allowed)) or 'none'}. Before the JVM starts, write "
        f"rt.configure(SparkSession.builder.config({ADAPTERS!r}, {adapter!r})), with a comma between several; under "
        f"spark-submit, and for a Spark Connect server, set {ADAPTERS_VARIABLE} in the driver's environment. Or host "
        f"it by itself: rowtime run {adapter} STREAM.",
        option="adapter",
        adapter=adapter,
    )


def allowed_names() -> set[str]:
    """What the driver's environment allows beside its queries: adapters, functions, and variables as ``env:NAME``."""
    return {name.strip() for name in os.environ.get(ADAPTERS_VARIABLE, "").split(",")} - {""}

"""An adapter that Spark hosts while its processes are killed."""

import threading
from typing import Any

from tests.crash.drivers import moment

MORE = 300


class Numbers:
    """Sends ``MORE`` rows in each process, a second apart, each in its own commit with a checkpoint; then it waits."""

    schema = "rowtime TIMESTAMP NOT NULL, n BIGINT"

    def run(self, sink: Any) -> None:
        sink.flush(checkpoint=sink.checkpoint or "0")
        first = int(sink.checkpoint)
        for n in range(first, first + MORE):
            sink.sendRow((moment(1 + n / 60), n))
            sink.flush(checkpoint=str(n + 1))
        threading.Event().wait()

"""A drain of a stream into a topic, to be killed."""

from typing import Any

import spark_rowtime as rt
from spark_rowtime.drain.kafka.sink import TopicSink, openTopicSink

SMALL = {"every": "0 s", "maxRows": 7}
QUICK = {"reconnect.backoff.max.ms": 100}
"""A broker that was killed is back within seconds."""


def drain_into(pipe: Any, stream: str, target: str, dying: bool) -> None:
    """Drains in small transactions for ever, and says the position after each; or all that there is, and ends."""
    write = TopicSink.commit

    def commit(sink: TopicSink) -> None:
        write(sink)
        pipe.send(sink.checkpoint)

    TopicSink.commit = commit  # type: ignore[method-assign]
    with (
        rt.openReader(stream, follow=dying) as reader,
        openTopicSink(target, reader.schema, key="n", options=QUICK, **(SMALL if dying else {})) as sink,
    ):
        if dying:
            reader._how = type(reader._how)("rowtime", max_rows=50)
        reader.drainTo(sink)

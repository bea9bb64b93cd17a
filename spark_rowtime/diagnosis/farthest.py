"""The farthest time that the feeds of a stream have come to."""

from spark_rowtime.diagnosis.reach import Reach
from spark_rowtime.diagnosis.stream_state import StreamState
from spark_rowtime.errors import RowtimeError
from spark_rowtime.store import open_store


def farthest(stream: StreamState, reach: Reach, *, of_output: bool = True) -> int | None:
    """The farthest time that a feed of the stream has promised or sent; None if there is none.

    The feeds are the producers that are no queries, of the stream and of all streams that queries between read. A
    stream that cannot be opened, or is beyond ``reach``, is left out. ``of_output``: the queries that write the stream
    are followed.
    """
    found: list[int] = []
    left, seen = [stream], {stream.stream}
    while left:
        here = left.pop()
        if here.farthest is not None and (here.is_fed or not here.queries):
            found.append(here.farthest)
        for path in _sources(here) if of_output else []:
            state = _opened(reach.path_of(path))
            if state is not None and state.stream not in seen:
                seen.add(state.stream)
                left.append(state)
    return max(found, default=None)


def _sources(stream: StreamState) -> list[str]:
    return [source.path for query in stream.queries for source in query.sources if source.path is not None]


def _opened(path: str | None) -> StreamState | None:
    if path is None:
        return None
    try:
        with open_store(path) as store:
            return StreamState.of(store.snapshot())
    except RowtimeError:
        return None

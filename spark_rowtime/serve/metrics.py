"""The streams as metrics for Prometheus. docs/metrics.md has the list."""

import logging
from collections.abc import Iterable, Iterator
from datetime import datetime

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.errors import RowtimeError, StoreUnavailableError
from spark_rowtime.serve.call import Call, SharedCalls, begun
from spark_rowtime.serve.served import Served
from spark_rowtime.store.record import WAITED_FOR
from spark_rowtime.stream_info import StreamInfo
from spark_rowtime.types.timestamps import SECOND_MICROS

LOG = logging.getLogger("spark_rowtime")
_STREAM = {
    "bound_seconds": (
        "event time of the stream's bound, in Unix time; +Inf: no row follows",
        "gauge",
    ),
    "rows": ("rows accepted", "counter"),
    "rows_rejected": ("rows rejected", "counter"),
    "rows_held_back": ("rows that are accepted and wait for the bound", "gauge"),
    "log_events": ("events in the log", "counter"),
    "producers_attached": ("producers that the stream waits for or that are idle", "gauge"),
}
_PRODUCER = {
    "bound_seconds": ("event time of the producer's own bound, in Unix time", "gauge"),
    "rows": ("rows of the producer that were accepted", "counter"),
    "rows_rejected": ("rows of the producer that were rejected", "counter"),
    "lag_messages": ("offsets that the end of its Kafka partition was ahead at its last commit", "gauge"),
    "last_sent_seconds": ("when it last sent a row or a new bound, in Unix time", "gauge"),
    "last_seen_seconds": ("when its process was last seen, in Unix time", "gauge"),
}


class StreamCollector(Collector):
    """Reads the streams each time that the metrics are asked for."""

    def __init__(self, served: Served, read: SharedCalls[[str], StreamInfo]) -> None:
        self._served, self._read = served, read

    def collect(self) -> Iterable[Metric]:
        """Yields the metrics of all streams. One that does not answer keeps the others waiting for moments alone."""
        infos = {path: _info(path, call) for path, call in begun(self._served.paths(), self._begin)}
        up = GaugeMetricFamily("rowtime_stream_up", "1 if the stream can be read, else 0", labels=["stream"])
        for path, info in infos.items():
            up.add_metric([path], int(info is not None))
        known = [info for info in infos.values() if info is not None]
        yield up
        yield from _families("rowtime_stream", _STREAM, ["stream"], map(_of_stream, known))
        rows = (_of_producer(info, i) for info in known for i in range(len(info.producers)))
        yield from _families("rowtime_producer", _PRODUCER, ["stream", "producer"], rows)
        yield from _states(known)

    def _begin(self, path: str) -> Call[StreamInfo] | None:
        try:
            return self._read.begin(path)
        except StoreUnavailableError:  # too many do not answer
            return None


def registry_of(served: Served, read: SharedCalls[[str], StreamInfo]) -> CollectorRegistry:
    """Returns a registry with the metrics of the streams, and nothing about this process. ``read`` reads a stream."""
    registry = CollectorRegistry()
    registry.register(StreamCollector(served, read))
    return registry


def _info(path: str, call: Call[StreamInfo] | None) -> StreamInfo | None:
    try:
        return None if call is None else call.result()
    except RowtimeError:
        return None
    except Exception:  # one stream with something unheard of in it must not hide the others
        LOG.exception("The stream %s has no metrics", path)
        return None


_Row = tuple[list[str], dict[str, float | None]]


def _of_stream(info: StreamInfo) -> _Row:
    return [info.path], {
        "bound_seconds": _seconds(info.bound),
        "rows": info.rows,
        "rows_rejected": info.rejected,
        "rows_held_back": info.rowsHeldBack,
        "log_events": info.seq,
        "producers_attached": sum(p.status in WAITED_FOR for p in info.producers),
    }


def _of_producer(info: StreamInfo, index: int) -> _Row:
    producer = info.producers[index]
    return [info.path, producer.name], {
        "bound_seconds": _seconds(producer.bound),
        "rows": producer.accepted,
        "rows_rejected": producer.rejected,
        "lag_messages": producer.lag,
        "last_sent_seconds": _unix(producer.sent),
        "last_seen_seconds": _unix(producer.seen),
    }


def _states(infos: Iterable[StreamInfo]) -> Iterator[Metric]:
    labels = ["stream", "producer"]
    holds = GaugeMetricFamily("rowtime_producer_holds_clock", "1 if the stream waits for the producer", labels=labels)
    status = GaugeMetricFamily("rowtime_producer_status", "1 for the producer's status", labels=[*labels, "status"])
    unread = GaugeMetricFamily("rowtime_reader_unread_rows", "rows not yet read", labels=["stream", "reader"])
    for info in infos:
        holders = frozenset(info.holders)
        for producer in info.producers:
            holds.add_metric([info.path, producer.name], int(producer.name in holders))
            status.add_metric([info.path, producer.name, producer.status.value], 1)
        for reader in info.readers:
            unread.add_metric([info.path, reader.name], reader.unread)
    yield from (holds, status, unread)


def _families(
    prefix: str, kinds: dict[str, tuple[str, str]], labels: list[str], rows: Iterable[_Row]
) -> Iterator[Metric]:
    """Returns a metric for each name in ``kinds``, with the values of all rows. A value that is None is left out."""
    makers = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily}
    families = {name: makers[kind](f"{prefix}_{name}", text, labels=labels) for name, (text, kind) in kinds.items()}
    for own, values in rows:
        for name, value in values.items():
            if value is not None:
                families[name].add_metric(own, value)
    return iter(families.values())


def _seconds(bound: RowtimeBound | None) -> float | None:
    if bound is None:
        return None
    return float("inf") if bound.isEnd else bound.floor / SECOND_MICROS


def _unix(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()

"""What is shown of the cuts of a stream whose bounds lie beside Kafka topics."""

import json
from collections.abc import Iterator, Mapping

from spark_rowtime.bounds.topic_cut import Offsets, TopicCut
from spark_rowtime.cli.output import styled
from spark_rowtime.reader.reader import RowReader
from spark_rowtime.store import open_store
from spark_rowtime.types.json_values import dump
from spark_rowtime.types.short_repr import some

_NAMED = 12
"""The largest number of partitions that one line names of a topic."""


class PassedCuts:
    """The cuts that a reader has come past, as lines: for each producer up to where its bounds reach now."""

    def __init__(self, stream: str, reader: RowReader, *, as_json: bool) -> None:
        self._stream, self._reader, self._line = stream, reader, _json_line if as_json else _text_line
        self._seq = self._position()

    def lines(self, *, end: bool = False) -> Iterator[str]:
        """Yields a line for each producer with a new cut, which names the partitions that have moved.

        ``end``: also the cuts of bounds that have not moved the stream's bound, and so come with no train.
        """
        found: dict[str, TopicCut] = {}
        with open_store(self._stream) as store:
            upto = store.head().seq if end else max(self._seq, self._position())
            for logged in store.cuts(self._seq, upto) if store.has_cuts() else ():
                if logged.cut is not None:
                    before = found.get(logged.producer)
                    found[logged.producer] = logged.cut if before is None else before.merged(logged.cut)
        self._seq = upto  # last: if something raises before this line, these cuts are new the next time
        for producer, cut in found.items():
            yield self._line(producer, cut)

    def _position(self) -> int:
        return int(json.loads(self._reader.position)["seq"])


def show_offsets(offsets: Offsets) -> str:
    """The offsets of topics in one line, such as "orders 0: 4711, 1: 4690"."""
    return "; ".join(f"{topic} {_ends(ends)}" for topic, ends in offsets.items())


def _ends(ends: Mapping[int, int]) -> str:
    return some([f"{partition}: {end}" for partition, end in sorted(ends.items())], _NAMED)


def _text_line(producer: str, cut: TopicCut) -> str:
    return styled(f"-- {producer}: bounds up to {show_offsets(cut.offsets)}", dim=True)


def _json_line(producer: str, cut: TopicCut) -> str:
    return dump({"producer": producer, "cut": cut.offsets})

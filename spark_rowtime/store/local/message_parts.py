"""Record batches as messages, whose parts are written to a file one after the other."""

from typing import TypeAlias

import pyarrow as pa

Part: TypeAlias = "bytes | pa.Buffer"
LARGE_ROWS = 32_768
"""From this many rows on, to copy a column takes longer than to have it as a part of its own."""


class Messages:
    """The messages of one schema, as ``RecordBatch.serialize`` gives them."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema, self._file = schema, _Parts()
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def of(self, rows: pa.RecordBatch) -> list[Part]:
        """Returns a message in parts. Those of a large one are the memory of the columns, not a copy of it.

        The schema of ``rows`` may differ in what is nullable, which no message has.
        """
        if rows.num_rows < LARGE_ROWS:
            return [rows.serialize()]
        writer, self._writer = self._writer or self._begun(), None  # an interrupt may leave it within a message
        self._file.found.clear()
        writer.write_batch(pa.RecordBatch.from_arrays(rows.columns, schema=self._schema))
        self._writer = writer
        return self._file.found.copy()

    def _begun(self) -> pa.ipc.RecordBatchStreamWriter:
        writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), self._schema)
        writer.write_batch(pa.RecordBatch.from_pylist([], self._schema))  # with the first one it writes the schema
        return writer


class _Parts:
    """A file for Arrow's writer, which keeps what is written to it."""

    closed = False

    def __init__(self) -> None:
        self.found: list[Part] = []
        self.write = self.found.append

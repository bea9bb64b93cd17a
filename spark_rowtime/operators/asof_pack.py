"""The rows of the two sides of an as-of join on their way into its state function."""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from spark_rowtime.operators.chunks import BUCKET, CHUNK, split, to_bytes
from spark_rowtime.operators.columns import chunk_field, quoted
from spark_rowtime.operators.current_rows import HASH
from spark_rowtime.spark.versioned_pickle import versioned

SIDE, PLACE = "side", "place"
LEFT, RIGHT = 0, 1
_PLACES_OF_TASK = 1 << 33


def packed(df: DataFrame, side: int, by: list[str], on: str, buckets: int) -> DataFrame:
    """Returns the rows of a side as chunks, one for each bucket of keys, with their place in the order of arrival.

    The source plans the tasks of a batch in the order of the stream, and batches follow each other in it, too.
    """
    whole = [StructField(name, kind(), False) for name, kind in COLUMNS.items()]
    key = F.xxhash64(*quoted(by)) if by else F.lit(0).cast("long")
    hashed = df.select(*quoted(df.columns), key.alias(HASH))
    return hashed.mapInArrow(versioned(packer(side, buckets)), StructType([*whole, chunk_field(on)]))


COLUMNS = {BUCKET: IntegerType, SIDE: IntegerType, PLACE: LongType}


def packer(side: int, buckets: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        for number, batch in enumerate(batches, task.partitionId() * _PLACES_OF_TASK):
            rows = pa.Table.from_batches([batch])
            found, parts = split(rows, np.mod(rows.column(HASH).to_numpy(), buckets))
            chunks = pa.array([to_bytes(part) for part in parts], pa.binary())
            same = [pa.array([value] * len(found), kind) for value, kind in ((side, pa.int32()), (number, pa.int64()))]
            yield pa.record_batch([pa.array(found, pa.int32()), *same, chunks], names=[*COLUMNS, CHUNK])

    return pack

"""A sink or a reader in a function that Spark would run elsewhere."""

from pickle import PicklingError

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import spark_rowtime as rt


@pytest.mark.long
def test_a_udf_that_uses_a_sink_or_a_reader_is_told_what_to_do(spark: SparkSession) -> None:
    rt.createStream("memory://in-a-udf", "rowtime TIMESTAMP NOT NULL, n BIGINT")
    with rt.openSink("memory://in-a-udf") as sink, rt.openReader("memory://in-a-udf") as reader:
        for used in (sink.sendRow, reader.read):
            with pytest.raises(PicklingError) as caught:
                spark.range(1).select(udf(lambda n, call=used: call(n))("id")).collect()
            assert "of memory://in-a-udf cannot be pickled" in str(caught.value)
            assert "open one within the function" in str(caught.value)

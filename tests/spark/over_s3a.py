"""A program that reads a stream with Hadoop's own file system for S3, ``s3a``, and writes what it found as JSON.

``python -m tests.spark.over_s3a PATH FOLDER`` reads it natively and through Python. hadoop-aws comes from Maven, in the
version of PySpark's Hadoop, with the modules of Amazon's library that it needs instead of the bundle of all of them.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pyspark
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from scripts.mavenjars import dependency, fetched
from tests.sparksession import NATIVE_READ, make_session

AMAZON, SDK_VERSION = "software.amazon.awssdk", "2.35.4"
"""The version that hadoop-aws 3.5.0 names."""
_OTHERS = ("org.slf4j", "commons-logging")


def s3a_jars() -> str:
    """hadoop-aws and what it needs, as a list with commas, for ``spark.jars``."""
    [hadoop] = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    version = hadoop.stem.rpartition("-")[2]
    modules = [dependency(AMAZON, name, SDK_VERSION, _OTHERS) for name in ("s3", "s3-transfer-manager", "sts")]
    aws = dependency("org.apache.hadoop", "hadoop-aws", version, (AMAZON, *_OTHERS))
    folder = fetched(f"hadoop-aws-{version}", aws + "".join(modules))
    return ",".join(map(str, sorted(folder.glob("*.jar"))))


def session(jars: str) -> SparkSession:
    """A session that uses the S3 server of the environment. Key and secret are in the environment, too."""
    s3a = {
        "endpoint": os.environ["AWS_ENDPOINT_URL"],
        "endpoint.region": os.environ["AWS_REGION"],
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "attempts.maximum": "1",
    }
    return make_session(**{f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()}, **{"spark.jars": jars})


def read(spark: SparkSession, path: str, checkpoint: str, native: bool) -> dict[str, Any]:
    """The rows of each batch, whether they were read natively, and the error with which the query has failed."""
    spark.conf.set(NATIVE_READ, str(native).lower())
    batches: list[list[str]] = []
    frame = spark.readStream.format("rowtime").option("maxRowsPerTrigger", "3").load(path)
    writer = frame.writeStream.foreachBatch(lambda rows, _: batches.append(sorted(map(repr, rows.collect()))))
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    error = ""
    try:
        query.awaitTermination()
    except StreamingQueryException as failed:
        error = str(failed)
    return {"native": "ColumnarToRow" in query._jsq.explainInternal(False), "batches": batches, "error": error}


def main(path: str, gone: str, folder: str) -> None:
    """``gone``: a stream of which an object is gone."""
    spark = session(s3a_jars())
    ways = {f"{native}": read(spark, path, f"{folder}/{native}", native) for native in (True, False)}
    ways["gone"] = read(spark, gone, f"{folder}/gone", True)
    ways["class"] = spark._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(
        "s3a", spark._jsc.hadoopConfiguration()
    ).getName()
    spark.stop()
    Path(folder, "said.json").write_text(json.dumps(ways))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A program that runs with a folder of changed Spark classes before Spark's own, and writes the result as JSON."""

import json
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException

from tests.spark.query_output import Watched
from tests.sparksession import make_session


def main(path: str, classes: str, said: str) -> None:
    spark = make_session(**{"spark.driver.extraClassPath": classes})
    reader = spark.readStream.format("rowtime")
    refused, plain = Watched(), Watched()
    try:
        refused.start(reader.load(path)).step()
        error = ""
    except StreamingQueryException as caught:
        error = str(caught)
    plain.start(reader.option("bounds", "ignore").load(path)).step()
    Path(said).write_text(json.dumps({"error": error, "batches": len(refused.batches), "rows": len(plain.rows)}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A program: tries cases of marked.py in a session without the extension, and writes the statistics as JSON.

python -m tests.law7.run_marked FOLDER FIRST LAST
"""

import json
import sys
from collections import Counter
from pathlib import Path

from hypothesis import settings
from pyspark.sql import SparkSession

from tests.law7.marked import marked_cases, tried_with_markers
from tests.law7.seeds import try_seed
from tests.sparksession import SETTINGS


def main(folder: str, first: str, last: str) -> None:
    settings.register_profile("program", deadline=None)
    settings.load_profile("program")
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    figures: Counter[str] = Counter()
    for number in range(int(first), int(last)):
        # odd seeds are of certain kinds
        try_seed(spark, marked_cases(), 2 * number, Path(folder), figures, tried_with_markers)
    Path(folder, "figures.json").write_text(json.dumps(figures))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

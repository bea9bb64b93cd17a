"""A Spark driver that writes the hours of a stream into a table and corrects them, as docs/howto/corrections.md does.

``python -m tests.crash.correcting FOLDER [POINT]`` runs both queries until all available data are processed. With a
point it kills its process group there.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from tests.spark.test_corrections import Shop
from tests.sparksession import make_session

BEFORE, AFTER = "before the table's commit", "after it"


def main(folder: str, point: str | None = None) -> None:
    spark = make_session()
    shop = Shop(spark, Path(folder))
    shop.write()
    add = shop.page["add"]

    def dying(changes: Any, batch: int) -> None:
        if point == BEFORE:
            os.killpg(0, signal.SIGKILL)
        add(changes, batch)
        if point == AFTER:
            os.killpg(0, signal.SIGKILL)

    shop.page["add"] = dying
    shop.correct()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

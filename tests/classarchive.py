"""Makes the archive of Spark's classes that the drivers of the tests share.

python -m tests.classarchive        takes half a minute; without the archive the tests take longer
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.javaoptions import CLASSES, QUICK
from tests.sparkhome import set_spark_home

QUERY = Path(__file__).parent.parent / "examples" / "01_hourly_counts.py"
"""The archive has the classes of this query. Others share most of them."""


def make_archive() -> None:
    """Runs the query in a JVM that writes, when it ends, the classes that it has loaded."""
    set_spark_home()
    CLASSES.unlink(missing_ok=True)
    os.environ["SPARK_SUBMIT_OPTS"] = f"{QUICK} -XX:ArchiveClassesAtExit={CLASSES}"
    subprocess.run([sys.executable, str(QUERY)], check=False, capture_output=True)  # until the JVM ends


if __name__ == "__main__":
    make_archive()

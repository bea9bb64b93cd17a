"""``python -m spark_rowtime.cli``."""

from spark_rowtime.cli import main

main(prog_name="rowtime")

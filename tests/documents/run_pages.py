"""Run as a program in an empty folder: runs the blocks of pages, and writes what went wrong into a JSON file.

    python -m tests.documents.run_pages OUTCOME.json PAGE...

A process of its own, since the pages name streams by relative paths, which are relative to where Spark was started.
All pages share one Spark session and the folder, which is emptied between them.
"""

import contextlib
import doctest
import io
import json
import logging
import os
import shutil
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.documents.blocks import Block, blocks
from tests.sparksession import make_session

CHECKER, HOW = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
COMMANDS = f'rowtime() {{ "{sys.executable}" -m spark_rowtime.cli "$@"; }}\nset -eu\n'


def run_page(page: Path) -> str:
    """What is wrong with a page; empty if all its blocks run and print what the page says."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        try:
            printed = _python(block, page, names) if block.language == "python" else _shell(block)
        except BaseException:
            return f"{page.name}, line {block.line}:\n{traceback.format_exc()}"
        if block.prints is not None and not CHECKER.check_output(block.prints, printed, HOW):
            return f"{page.name}, line {block.line}: the page says\n{block.prints}\nand it prints\n{printed}"
    return ""


def _python(block: Block, page: Path, names: dict[str, Any]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), names)
    return out.getvalue()


def _shell(block: Block) -> str:
    done = subprocess.run(["bash", "-c", COMMANDS + block.code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _clean(spark: SparkSession, folder: Path) -> None:
    for query in spark.streams.active:
        query.stop()
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def main(outcome: str, *pages: str) -> None:
    logging.getLogger("spark_rowtime.laterow").setLevel(logging.ERROR)
    folder = Path.cwd()
    if any(folder.iterdir()):
        sys.exit(f"{folder} is not empty. Pages run in the current folder, and what is there is removed after each.")
    spark = make_session()
    stop, SparkSession.stop = SparkSession.stop, lambda _: None  # type: ignore[method-assign]  # the next page needs it
    wrong = {}
    for page in pages:
        wrong[page] = run_page(Path(page))
        _clean(spark, folder)
    stop(spark)
    Path(outcome).write_text(json.dumps(wrong))


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    main(*sys.argv[1:])

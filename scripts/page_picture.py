"""Takes the picture of the page of ``rowtime serve`` in the README: a real pipeline, a real browser.

Run as `python scripts/page_picture.py` with the extra ``dev``, a JDK and Chromium.
"""

import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import expect, sync_playwright
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, window

import spark_rowtime as rt

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "serve.png"
ROWS = {
    "Berlin": ("08:10", "09:05"),
    "Lisbon": ("08:30", "11:20"),
    "Oslo": ("08:20", "10:40"),
    "Rome": ("08:15", "10:05"),
}


def main() -> None:
    """Fills a stream, counts its hours in a query, and takes the picture of both streams."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        orders, hourly = f"{folder}/orders.rowtime", f"{folder}/hourly.rowtime"
        rt.createStream(orders, "rowtime TIMESTAMP NOT NULL, units INT", producers=[*ROWS])
        sinks = {name: stack.enter_context(rt.openSink(orders, producer=name, onLate="reject")) for name in ROWS}
        for name, times in ROWS.items():
            sinks[name].sendRows([(f"2026-01-05T{time}:00Z", 1) for time in times])
            sinks[name].flush()
        sinks["Lisbon"].sendRow(("2026-01-05T10:10:00Z", 1))
        sinks["Lisbon"].flush()
        _count(orders, hourly, folder)
        command = [
            sys.executable,
            "-m",
            "spark_rowtime.cli",
            "serve",
            "orders.rowtime",
            "hourly.rowtime",
            "--port",
            "0",
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as server:
            assert server.stdout is not None
            _take(server.stdout.readline().split()[-1])
            server.terminate()


def _count(orders: str, hourly: str, folder: str) -> None:
    spark = rt.configure(SparkSession.builder.master("local[1]")).getOrCreate()
    read = spark.readStream.format("rowtime").load(orders)
    hours = read.groupBy(window("rowtime", "1 hour")).agg(count("*").alias("orders"))
    query = (
        hours.select(col("window.end").alias("rowtime"), "orders")
        .writeStream.format("rowtime")
        .queryName("hourly counts")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start(hourly)
    )
    query.awaitTermination()


def _take(url: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 640})
        page.goto(url)
        expect(page.locator(".chain").nth(0)).to_be_visible()
        expect(page.locator(".silence").nth(0)).to_contain_text("has sent nothing", timeout=30_000)
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()

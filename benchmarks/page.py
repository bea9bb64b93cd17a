"""The page of ``rowtime serve`` with 1,000 producers, in headless Chromium: when it is drawn, and what it costs.

Needs Chromium and the extra ``dev``. The server is a process of its own; its share of a core is its CPU time.
"""

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
from playwright.sync_api import Page, sync_playwright

import spark_rowtime as rt
from harness import figure, folder

PRODUCERS, UPDATES, LOADS, SECONDS = 1000, 20, 5, 15
WHAT = "page of 1,000 producers"
START = rt.RowtimeBound("2026-01-05T10:00:00Z").floor
_SEEN = """([name, text]) => new Promise(done => {
  const row = [...document.querySelectorAll('.lanes tbody tr')].find(row => row.textContent.includes(name));
  const look = () => {
    if (!row.textContent.includes(text)) return;
    watch.disconnect();
    requestAnimationFrame(() => done(Date.now()));
  };
  const watch = new MutationObserver(look);
  watch.observe(row, {subtree: true, childList: true, characterData: true});
  look();
})"""
"""Resolves to the moment at which a producer's row has a text, and is about to be painted."""


@contextmanager
def served(path: str) -> Iterator[tuple[str, psutil.Process]]:
    command = [sys.executable, "-m", "spark_rowtime.cli", "serve", path, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        said = server.stdout.readline()
        assert said.startswith("serving at "), f"rowtime serve has ended with exit code {server.wait()}: see above"
        yield said.split()[-1], psutil.Process(server.pid)
        server.terminate()


def share(server: psutil.Process, during: Any) -> float:
    """The server's share of a core, in percent, while ``during`` runs."""
    cpu, start = sum(server.cpu_times()[:2]), time.perf_counter()
    during()
    return 100 * (sum(server.cpu_times()[:2]) - cpu) / (time.perf_counter() - start)


def updates(page: Page, sinks: list[Any], first: int) -> list[float]:
    """Milliseconds from a commit to when the page shows it, at random moments."""
    took = []
    for n in range(first, first + UPDATES):
        time.sleep(random.uniform(0.2, 1.0))
        sink, bound = sinks[n], rt.RowtimeBound.fromFloor(START + 3_600_000_000 + n * 1_000_000)
        page.evaluate(f"window.seen = ({_SEEN})([`producer {n:04}`, `{bound.time:%H:%M:%S}`]); 0")
        sink.sendRowtimeBound(bound)
        sink.flush()
        sent = time.time() * 1000
        took.append(page.evaluate("window.seen") - sent)
    return took


def all_send(sinks: list[Any]) -> None:
    """Each producer sends a bound each second."""
    for second in range(SECONDS):
        begin = time.perf_counter()
        for part in range(10):
            for sink in sinks[part::10]:
                sink.sendRowtimeBound(rt.RowtimeBound.fromFloor(START + (7200 + second) * 1_000_000))
            time.sleep(max(0.0, begin + (part + 1) / 10 - time.perf_counter()))


def main() -> None:
    with folder() as root, sync_playwright() as playwright:
        path = str(root / "many.rowtime")
        rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
        sinks = [rt.openSink(path, producer=f"producer {n:04}") for n in range(PRODUCERS)]
        for n, sink in enumerate(sinks):
            sink.sendRowtimeBound(rt.RowtimeBound.fromFloor(START + n * 1_000_000))
        for sink in sinks:
            sink.flush()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        with served(path) as (url, server):
            drawn = []
            for _ in range(LOADS):
                page = browser.new_page()
                page.goto(url)
                page.wait_for_selector(".lanes tbody tr")
                page.wait_for_function("performance.getEntriesByName('drawn').length")
                drawn.append(page.evaluate("performance.getEntriesByName('drawn')[0].startTime"))
                if len(drawn) < LOADS:
                    page.close()
            figure(f"{WHAT}, first lanes drawn", drawn, "ms")
            figure(f"{WHAT}, commit to seen, 200 lanes", updates(page, sinks, 100), "ms")
            page.get_by_role("button", name="Show all").click()
            figure(f"{WHAT}, commit to seen, all lanes", updates(page, sinks, 300), "ms")
            figure(f"{WHAT}, core of the server, nothing sent", [share(server, lambda: time.sleep(SECONDS))], "%")
            busy = share(server, lambda: all_send(sinks))
            figure(f"{WHAT}, core of the server, all send each second", [busy], "%")
            page.close()
            time.sleep(20)
            idle = share(server, lambda: time.sleep(SECONDS))
            figure(f"{WHAT}, core of the server, nobody looks", [idle], "%")
        browser.close()
        for sink in sinks:
            sink.close()


if __name__ == "__main__":
    main()

"""A server as a process of its own, and a real browser. Without a browser the tests that need it are skipped."""

import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import playwright.sync_api as playwright
import pytest

import spark_rowtime as rt
from tests.servers import ServerProcess

SCHEMA = "rowtime TIMESTAMP NOT NULL, n INT"
LIMIT_MILLIS = 240_000
"""How long a browser and a server may take on a busy machine."""
playwright.expect.set_options(timeout=LIMIT_MILLIS)


@pytest.fixture
def orders(tmp_path: Path) -> str:
    """A stream that waits for Berlin and Oslo."""
    path = str(tmp_path / "orders.rowtime")
    rt.createStream(path, SCHEMA, producers=["Berlin", "Oslo"])
    return path


class Server:
    """The command ``rowtime serve`` as a process."""

    def __init__(self, log: Path, *arguments: str, files: int | None = None) -> None:
        """``files``: how many it may have open."""
        self._server = ServerProcess("rowtime serve", log)
        limited = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh"] if files else []
        command = [*limited, sys.executable, "-m", "spark_rowtime.cli", "serve", *arguments]
        self._server.start(command, lambda: re.search(r"^serving at \S+\s", log.read_text()))
        self.url = log.read_text().split()[2]

    @property
    def port(self) -> str:
        return self.url.rstrip("/").rsplit(":", 1)[1]

    def end(self) -> int:
        """Ends it as Ctrl-C does; returns the exit code."""
        return self._server.end(signal.SIGTERM)


@pytest.fixture
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Starts servers, which end with the test."""
    started: list[Server] = []

    def start(*arguments: str, files: int | None = None) -> Server:
        log = tmp_path_factory.mktemp("serve") / "log"
        port = () if "--port" in arguments else ("--port", "0")
        started.append(Server(log, *arguments, *port, files=files))
        return started[-1]

    yield start
    for server in started:
        server.end()


def _chromium() -> str:
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if found is None:
        pytest.skip("there is no Chromium here (Debian: apt-get install chromium)")
    return found


@pytest.fixture(scope="package")
def browser() -> Iterator["playwright.Browser"]:
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"], timeout=LIMIT_MILLIS)
        yield found
        found.close()


class Watched:
    """What a page of the browser must not do: load from elsewhere, run into errors, break the security policy."""

    def __init__(self, page: "playwright.Page") -> None:
        self.asked: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on(
            "console", lambda said: self.complaints.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog {dialog.message}"))


@pytest.fixture
def open_page(browser: "playwright.Browser") -> Iterator[Callable[..., "playwright.Page"]]:
    """Opens the page of a server; at the end it must have asked nobody else and complained of nothing."""
    opened: list[tuple[playwright.BrowserContext, Watched, str]] = []

    def open_at(url: str, **options: object) -> "playwright.Page":
        context = browser.new_context(**options)
        context.set_default_timeout(LIMIT_MILLIS)
        page = context.new_page()
        opened.append((context, Watched(page), url))
        page.goto(url)
        playwright.expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
        return page

    yield open_at
    for context, watched, url in opened:
        context.close()
        assert [asked for asked in watched.asked if not asked.startswith(url)] == []
        assert watched.complaints == []

"""A small HTTP server that records what it is asked, and that fails, hangs, dies or kills as it is told."""

import json
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Say:
    """How to answer one request. ``hang``: not at all; ``die``: the connection is cut.

    ``kill``: the process of that id gets SIGKILL, "before" or "after" the answer was sent.
    """

    status: int = 200
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = ()
    hang: bool = False
    die: bool = False
    kill: str = ""


class Server:
    """``asked`` are all requests; ``taken`` those that were answered with 200. ``script`` is used up, then 200."""

    def __init__(self, answer: Callable[[Asked], Say] | None = None) -> None:
        self.asked: list[Asked] = []
        self.taken: list[Asked] = []
        self.script: deque[Say] = deque()
        self.victim: Callable[[], int] = os.getpid
        self._answer = answer or (lambda _: Say())
        self.over = threading.Event()
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # one packet for an answer

            def _do(self) -> None:
                outer.handle(self)

            do_GET = do_POST = do_PUT = _do

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        asked = Asked(handler.command, handler.path, headers, body)
        with self._lock:
            self.asked.append(asked)
            say = self.script.popleft() if self.script else self._answer(asked)
            if say.status // 100 == 2 and not say.hang and not say.die:
                self.taken.append(asked)
        if say.hang:
            self.over.wait()
        victim = self.victim() if say.kill else 0
        if say.kill == "before":
            os.kill(victim, signal.SIGKILL)
        if say.die or say.hang or say.kill == "before":
            handler.close_connection = True
            return
        handler.send_response_only(say.status)
        for name, value in (*say.headers, ("Content-Length", str(len(say.body)))):
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(say.body)
        handler.wfile.flush()
        if say.kill == "after":
            os.kill(victim, signal.SIGKILL)

    def close(self) -> None:
        self.over.set()
        self._http.shutdown()
        self._http.server_close()


@contextmanager
def serving(answer: Callable[[Asked], Say] | None = None) -> Iterator[Server]:
    server = Server(answer)
    try:
        yield server
    finally:
        server.close()

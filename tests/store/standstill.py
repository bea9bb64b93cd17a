"""A proxy before a PostgreSQL server that lets its client stand still behind any message, or within one."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from tests.crash.cutting_proxy import CHUNK_BYTES, shut

EXECUTE, QUERY, SYNC = "E", "Q", "S"
Stop = tuple[int, bool]
"""Behind which message of a call, from 1 on, and whether only half of that message reaches the server."""


class Standstill:
    """Forwards to a port of this machine. Behind the message at ``stop`` nothing is forwarded until ``go_on``.

    To the server this is a client that was stopped there: the connection stays open, and nothing comes. ``stopped_at``
    is called then, as to stop the client in fact. Clients must connect with OPTIONS.
    """

    OPTIONS = "?sslmode=disable&gssencmode=disable"

    def __init__(self, server: int, stopped_at: Callable[[], object] = lambda: None) -> None:
        self._server, self._stopped_at = server, stopped_at
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.seen: list[str] = []
        """The types of the messages since ``watch``."""
        self._stop: Stop | None = None
        self._within: bytes | None = None
        self.stopped, self._goes_on = threading.Event(), threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def watch(self, stop: Stop | None = None, within: bytes | None = None) -> None:
        """Notes the messages from now on, and stops at one of them, or in the middle of the first with that text."""
        self.seen, self._stop, self._within = [], stop, within

    def go_on(self) -> None:
        self._stop = None
        self._goes_on.set()

    def close(self) -> None:
        self.go_on()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server))
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._up, args=(client, server), daemon=True).start()
                threading.Thread(target=_down, args=(server, client), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError, EOFError):
            server.sendall(_message(client, 0))
            while True:
                message = _message(client, 1)
                self.seen.append(chr(message[0]))
                if self._within is not None and self._within in message:
                    self._stop, self._within = (len(self.seen), True), None
                if self._stop is not None and len(self.seen) == self._stop[0]:
                    whole = len(message) // 2 if self._stop[1] else len(message)
                    server.sendall(message[:whole])
                    self._stand_still()
                    message = message[whole:]
                server.sendall(message)
        shut(client, server)

    def _stand_still(self) -> None:
        self._stopped_at()
        self.stopped.set()
        self._goes_on.wait()


def _message(source: socket.socket, types: int) -> bytes:
    """The next message: its type, if it has one, its length, and the rest."""
    start = _exactly(source, types + 4)
    return start + _exactly(source, int.from_bytes(start[types:], "big") - 4)


def _exactly(source: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        parts.append(source.recv(min(size, CHUNK_BYTES)))
        size -= len(parts[-1])
        if not parts[-1]:
            raise EOFError
    return b"".join(parts)


def _down(server: socket.socket, client: socket.socket) -> None:
    with suppress(OSError):
        while chunk := server.recv(CHUNK_BYTES):
            client.sendall(chunk)
    shut(client, server)

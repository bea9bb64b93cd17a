"""A gate before a server: it forwards, refuses, or accepts and never answers."""

import socket
import threading
from contextlib import suppress

CHUNK_BYTES = 1 << 16
OPEN, REFUSING, SILENT = "open", "refusing", "silent"


class Gate:
    """Forwards to a port of this machine while its ``mode`` is OPEN. A new mode counts for new connections."""

    def __init__(self, server: int) -> None:
        self._server, self.mode, self.asked = server, OPEN, threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._kept: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def turn(self, mode: str) -> None:
        """Sets the mode, and ends the connections that there are."""
        self.mode = mode
        self.asked.clear()
        kept, self._kept = self._kept, []  # a client may connect again at once
        for one in kept:
            _shut(one)

    def close(self) -> None:
        self._listener.close()
        self.turn(REFUSING)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._kept.append(client)
                self.asked.set()
                if self.mode == REFUSING:
                    _shut(client)
                elif self.mode == OPEN:
                    server = socket.create_connection(("127.0.0.1", self._server))
                    self._kept.append(server)
                    for pair in ((client, server), (server, client)):
                        threading.Thread(target=_forward, args=pair, daemon=True).start()


def _forward(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(CHUNK_BYTES):
            target.sendall(chunk)
    _shut(source)
    _shut(target)


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()

"""A server that speaks enough of PostgreSQL's protocol to ask a client for its password in clear."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_ENCRYPTION = (80877103, 80877104)
"""The requests for TLS and for GSSAPI, which it refuses."""
_CLEAR_PASSWORD = b"R" + struct.pack("!II", 8, 3)


class Thief:
    """Listens on a port of its own. ``calls`` counts the clients that came, ``heard`` is all they have said."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.calls, self.heard = 0, b""

    def run(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self.calls += 1
                with client, suppress(OSError, struct.error):
                    client.settimeout(10)
                    self._ask(client)

    def _ask(self, client: socket.socket) -> None:
        while True:
            size, what = struct.unpack("!II", client.recv(8, socket.MSG_WAITALL))
            self.heard += client.recv(size - 8, socket.MSG_WAITALL)
            if what not in _ENCRYPTION:
                break
            client.sendall(b"N")
        client.sendall(_CLEAR_PASSWORD)
        self.heard += client.recv(1000)

    def end(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@contextmanager
def thief() -> Iterator[Thief]:
    """A server that is there for the block."""
    server = Thief()
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.end()
        thread.join()

"""A proxy between a client and a server that cuts the connection at a chosen message of the client."""

import socket
import threading
from contextlib import suppress

CHUNK_BYTES = 1 << 16


class CuttingProxy:
    """Forwards to a port of this machine. Each chunk that a client sends is counted, from 1, over all connections.

    At the number ``cut_at`` it closes the connection: with ``delivered`` after the server has answered, so that only
    the answer is lost; otherwise before the server gets the chunk.
    """

    def __init__(self, server: int) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.count, self.cut_at, self.delivered = 0, 0, False
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _cuts(self, _: bytes) -> bool:
        return self.count == self.cut_at

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._connect(self._listener.accept()[0])

    def _connect(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self._server))
        except OSError:  # it is not there now
            shut(client)
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        lost = threading.Event()
        threading.Thread(target=self._up, args=(client, server, lost), daemon=True).start()
        threading.Thread(target=self._down, args=(client, server, lost), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while chunk := client.recv(CHUNK_BYTES):
                self.count += 1
                if self._cuts(chunk):
                    if not self.delivered:
                        break
                    lost.set()  # the answer ends the connection
                server.sendall(chunk)
        shut(client, server)

    def _down(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while chunk := server.recv(CHUNK_BYTES):
                if lost.is_set():
                    break
                client.sendall(chunk)
        shut(client, server)


def shut(*sockets: socket.socket) -> None:
    """Closes both sides, and ends whoever reads from one of them."""
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()

"""Runs the web application until the process is told to end."""

import socket
from collections.abc import Callable, Iterable, Sequence
from types import FrameType

import uvicorn

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.serve.app import make_app
from spark_rowtime.serve.connections import Bounded
from spark_rowtime.serve.served import Served
from spark_rowtime.serve.watcher import Watcher

PARTING_SECONDS = 1
"""How long the server waits for answers that are under way when it ends."""


def serve(paths: Sequence[str], host: str, port: int, names: Iterable[str], ready: Callable[[str], object]) -> None:
    """Serves the streams at ``paths`` on ``host``. Calls ``ready`` with the address once connections are accepted."""
    served = Served(paths)
    watcher = Watcher(served)
    app = make_app(served, watcher, (host, *names))
    with _listening(host, port) as listening:
        ready(_address(host, listening))
        config = uvicorn.Config(
            app,
            http=Bounded,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=PARTING_SECONDS,
        )
        _Server(config, watcher).run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that disconnects the pages that are open when it is told to end."""

    def __init__(self, config: uvicorn.Config, watcher: Watcher) -> None:
        super().__init__(config)
        self._watcher = watcher

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called with the signal to end."""
        self._watcher.end()
        super().handle_exit(sig, frame)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise InvalidOptionError(
            f"Cannot listen on {host}, port {port}: {error.strerror or error}. Choose another --port (0: any that is "
            "free), or another --host.",
            option="port",
            value=str(port),
        ) from error


def _address(host: str, listening: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listening.getsockname()[1]}/"

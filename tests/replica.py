"""A standby of a PostgreSQL server of the tests, which a copy of its files and its log of writes keep up to date."""

import shutil
from pathlib import Path

from tests.postgresserver import START_SECONDS, PostgresServer

PRIMARY = {"wal_level": "replica", "max_wal_senders": "4", "synchronous_standby_names": "*", "synchronous_commit": "on"}
"""With these settings a commit returns once it is on the standby's disk too."""


class Replica(PostgresServer):
    """A standby of ``primary``, which must run with the settings PRIMARY. It only reads, until ``promote``."""

    def _prepare(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        source = f"host=127.0.0.1 port={self.primary.port} user=rowtime"
        self._run("pg_basebackup", "-d", source, "-D", self.data, "-R", "-X", "stream", "-c", "fast", "-N")

    def __init__(self, place: Path, primary: PostgresServer) -> None:
        self.primary = primary
        super().__init__(place)

    def promote(self) -> None:
        """Makes it a server of its own, and waits until it writes."""
        self._run("pg_ctl", "promote", "-D", self.data, "-w", "-t", str(int(START_SECONDS)))

    def url_of_both(self, stream: str) -> str:
        """The path of a stream that names both servers; what is connected to is the one that writes."""
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.port}"
        return f"postgresql://rowtime@{hosts}/rowtime/{stream}?target_session_attrs=read-write"

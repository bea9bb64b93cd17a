"""Paths of streams in PostgreSQL: ``postgresql://[user@]host[:port]/database/stream[?option=value]``."""

import os
import re
from typing import NamedTuple
from urllib.parse import unquote

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.arguments import did_you_mean, nearest
from spark_rowtime.types.short_repr import short_repr

SCHEME = "postgresql://"
_PORT = "5432"
_OPTIONS = frozenset({
    "host", "hostaddr", "port", "user", "dbname", "options", "application_name", "connect_timeout", "tcp_user_timeout",
    "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "target_session_attrs",
    "load_balance_hosts", "ssl", "sslmode", "sslrootcert", "sslcrl", "sslcrldir", "sslnegotiation", "sslsni",
    "ssl_min_protocol_version", "ssl_max_protocol_version", "channel_binding", "require_auth", "requirepeer",
    "gssencmode", "krbsrvname",
})  # fmt: skip
"""The options of the client library that a path may have: no secret, no file of secrets, and no library."""
_HOST = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:\d*)?")
_PATH = re.compile(
    r"postgresql://(?P<server>[^/?#]*)/(?P<database>[^/?#]*)(?:/(?P<stream>[^?#]*))?(?:\?(?P<options>.*))?"
)
_CUT_PASSWORD = re.compile(r"[^@/?]+:\d*[/?]([^/?@]*@|[^@?]*@[^/?]*/)")
"""``user:12/34@host/database/stream``; also a database whose name has a @, which may be written %40."""
_EXAMPLE = "postgresql://db.example.com:5432/shop/orders"


class Address(NamedTuple):
    """The connection string of a database, without any secret, and the name of a stream in it."""

    path: str
    conninfo: str
    stream: str

    @property
    def server(self) -> tuple[str, str, str]:
        """The host, the port and the name of the database, as the client library takes them."""
        given = conninfo_to_dict(self.conninfo)
        host = given.get("hostaddr") or given.get("host") or os.environ.get("PGHOST", "")
        port = given.get("port") or os.environ.get("PGPORT") or _PORT
        return str(host).lower(), str(port), str(given["dbname"])

    def other(self, stream: str) -> str:
        """Returns the path of another stream of the same database."""
        found = _PATH.fullmatch(self.path)
        assert found is not None
        options = f"?{found['options']}" if found["options"] else ""
        return f"{SCHEME}{found['server']}/{found['database']}/{stream}{options}"


def address(path: str) -> Address:
    """Parses the path of a stream. Raises InvalidOptionError, which repeats no secret, if it is none."""
    found = database_address(path)
    if not found.stream:
        raise InvalidOptionError(
            f"{path} names a database, but no stream in it. Write postgresql://host:port/database/stream, such as "
            f"{_EXAMPLE}.",
            path=path,
        )
    return found


def database_address(path: str) -> Address:
    """Parses the path of a database, or of a stream in it; ``stream`` is then its name, or the beginning of names."""
    _require_no_secret(path)
    parts = _PATH.fullmatch(path)
    if parts is None or not parts["database"]:
        raise InvalidOptionError(
            f"{path} is no path of a database. Write postgresql://host:port/database/stream, such as {_EXAMPLE}.",
            path=path,
        )
    options = f"?{parts['options']}" if parts["options"] else ""
    try:
        given = conninfo_to_dict(f"{SCHEME}{parts['server']}/{parts['database']}{options}")
    except ProgrammingError as error:
        raise InvalidOptionError(f"{path} cannot be used as a connection string: {error}", path=path) from None
    stream = parts["stream"] or ""
    if "\x00" in unquote(stream):
        raise InvalidOptionError("The name of a stream must not have a NUL character.", path=path)
    return Address(path, make_conninfo("", **given), stream)


def _require_no_secret(path: str) -> None:
    rest = path.removeprefix(SCHEME)
    user, at, hosts = re.split(r"[/?]", rest, maxsplit=1)[0].rpartition("@")
    # A part of a password that has a slash may stand for the port, and the rest of it for the database or the stream.
    if _CUT_PASSWORD.match(rest) or not all(map(_HOST.fullmatch, hosts.split(","))):
        raise InvalidOptionError(
            f"This is no path of a database: its host must be NAME or NAME:PORT. Write {_EXAMPLE}; never put a "
            "password into a path.",
            option="path",
        )
    shown = f"{SCHEME}{user.partition(':')[0]}{at}..."
    if at and ":" in user:
        raise InvalidOptionError(
            f"The path {shown} has a password. {_STORED} Set the environment variable PGPASSWORD, or use a password "
            "file (~/.pgpass) or a service (PGSERVICE) instead.",
            option="path",
        )
    for part in filter(None, rest.partition("?")[2].split("&")):
        name = unquote(part.partition("=")[0])
        if name not in _OPTIONS:
            raise _refused(shown, name)


_STORED = "Paths are stored in checkpoints, query plans and logs, so they must not contain secrets."


def _refused(shown: str, name: str) -> InvalidOptionError:
    variable = _variables().get(name.lower())
    instead = (
        f"Set the environment variable {variable}" if variable else "Name a service in the environment, PGSERVICE,"
    )
    hint = "" if variable else did_you_mean(nearest(name, _OPTIONS))
    return InvalidOptionError(
        f"The path {shown} has {short_repr(name)}, which is none of the options that a path may have.{hint} {_STORED} "
        f"{instead} instead. The options are {', '.join(sorted(_OPTIONS))}.",
        option="path",
        value=short_repr(name),
    )


def _variables() -> dict[str, str]:
    """The environment variables of the client library, by option."""
    return {o.keyword.decode(): o.envvar.decode() for o in Conninfo.get_defaults() if o.envvar}

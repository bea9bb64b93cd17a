"""Paths of streams in PostgreSQL: ``postgresql://[user@]host[:port]/database/stream[?option=value]``."""

import os
import re
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.arguments import did_you_mean, nearest, to_text
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
_ENCODED_COLON = re.compile("%3a", re.IGNORECASE)
_USER_AND_PASSWORD = re.compile(r"[^@]*:[^@]*@.*", re.DOTALL)
"""A value in which somebody has put ``user:password@host`` where the name of a host, a user or a database belongs."""
_QUOTED = re.compile('".*"', re.DOTALL)
"""What the client library repeats of a text that it cannot read."""
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


@lru_cache(maxsize=64)  # a call looks at the path first, and then opens it
def database_address(path: str) -> Address:
    """Parses the path of a database, or of a stream in it; ``stream`` is then its name, or the beginning of names.

    Law (*no secret is repeated*): an error shows the path only once it is known to have no part that a path may not
    have. So it says which part that is, and shows the user alone.
    """
    shown = _require_no_secret(path)
    if not _is_text(path):
        raise _unreadable(shown, "it has a NUL character or an unpaired surrogate")
    parts = _PATH.fullmatch(path)
    if parts is None or not parts["database"]:
        raise InvalidOptionError(
            f"{shown} is no path of a database. Write postgresql://host:port/database/stream, such as {_EXAMPLE}.",
            option="path",
        )
    options = f"?{parts['options']}" if parts["options"] else ""
    given, why = _parsed(f"{SCHEME}{parts['server']}/{parts['database']}{options}")
    if why:
        raise _unreadable(shown, why)
    stream = parts["stream"] or ""
    if "\x00" in unquote(stream):
        raise InvalidOptionError("The name of a stream must not have a NUL character.", path=path)
    return Address(path, make_conninfo("", **given), stream)


def _parsed(string: str) -> tuple[dict[str, Any], str]:
    """The options of a connection string, or why it has none. The error of the library would repeat it as a context."""
    try:
        return conninfo_to_dict(string), ""
    except ProgrammingError as error:
        return {}, _QUOTED.sub('"..."', str(error).strip())


def _is_text(path: str) -> bool:
    """Whether a stream can have that path. The error of ``to_text`` would repeat it, also as a context."""
    try:
        return to_text(path, "path") == path
    except InvalidOptionError:
        return False


def _require_no_secret(path: str) -> str:
    """Returns what errors may show of a path. Raises InvalidOptionError if it has a part that may be a secret."""
    rest = _ENCODED_COLON.sub(":", path.removeprefix(SCHEME))
    user, at, hosts = re.split(r"[/?]", rest, maxsplit=1)[0].rpartition("@")
    # A part of a password that has a slash may stand for the port, and the rest of it for the database or the stream.
    if _CUT_PASSWORD.match(rest) or not all(map(_HOST.fullmatch, hosts.split(","))):
        raise InvalidOptionError(
            f"This is no path of a database: its host must be NAME or NAME:PORT. Write {_EXAMPLE}; never put a "
            "password into a path.",
            option="path",
        )
    shown = f"{SCHEME}{user.partition(':')[0]}{at}..."
    place, _, options = rest.partition("?")
    database = place.partition("/")[2].partition("/")[0]
    if (at and ":" in user) or _USER_AND_PASSWORD.fullmatch(unquote(database)):
        raise _with_password(shown)
    if "#" in rest:
        raise _unreadable(shown, "it has a '#', which a name has as %23")
    for part in filter(None, options.split("&")):
        _require_plain(shown, part)
    return shown


def _require_plain(shown: str, part: str) -> None:
    """Raises InvalidOptionError if ``name=value`` is no option that a path may have, or has a password in it."""
    name, equals, value = part.partition("=")
    if not equals:
        raise _unreadable(shown, "one of its options has no value, or one has a '&', which is written %26")
    name, value = unquote(name), unquote(value)
    if name not in _OPTIONS:
        raise _refused(shown, name)
    if _USER_AND_PASSWORD.fullmatch(value) or (name == "user" and ":" in value):
        raise _with_password(shown)
    if "=" in part.partition("=")[2]:
        raise _unreadable(shown, f"the value of {name} has a '=', which is written %3D")


def _with_password(shown: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"The path {shown} has a password. {_STORED} Set the environment variable PGPASSWORD, or use a password "
        "file (~/.pgpass) or a service (PGSERVICE) instead.",
        option="path",
    )


def _unreadable(shown: str, why: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"The path {shown} cannot be used as a connection string: {why}. (The rest is not shown: it may be secret.)",
        option="path",
    )


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

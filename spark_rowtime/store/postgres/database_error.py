"""What an error of the database means for whoever calls: a RowtimeError that says what to do."""

import re

import psycopg
from psycopg import errors

from spark_rowtime.errors import InvalidOptionError, RowtimeError, StoreUnavailableError

_NO_SUCH_TEXT = (errors.ProgramLimitExceeded, errors.UntranslatableCharacter)
"""Errors of a text that no repetition stores."""
_OTHER_SESSION = (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)
"""Errors of a session without the statements of this client, or with another one's."""
_OTHER_TABLES = (errors.InvalidSchemaName, errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction)
"""Errors of a schema that has not what this version of the project has put there."""
_AGAIN = "Call again."
"""What may help. It is said of a commit that it does no harm: see ``of_commit``."""
_COMMIT_AGAIN = (
    "Call again: a commit that has landed in spite of this error is recognised by its number, and does not land twice."
)
_MEANT: tuple[tuple[type[psycopg.Error] | tuple[type[psycopg.Error], ...], str, dict[str, str]], ...] = (
    (
        errors.InsufficientPrivilege,
        (
            "The user of {path} lacks a privilege: {what}. Nothing of this call has landed. Grant it: the guide on "
            "PostgreSQL lists what readers, writers and owners need."
        ),
        {"lacks": "privilege"},
    ),
    (
        errors.ReadOnlySqlTransaction,
        (
            "The connection of {path} may only read: {what}. Nothing of this call has landed. The server is a "
            "standby, or default_transaction_read_only is set. Name the server that writes, or unset it."
        ),
        {"lacks": "privilege"},
    ),
    (
        _OTHER_TABLES,
        (
            "The tables of {path} are not those that this process needs: {what}. Nothing of this call has landed. If "
            "another version of spark-rowtime has changed them, start this process again with that version. If "
            "somebody has renamed or dropped the schema rowtime or a part of it, put that back, or restore a backup."
        ),
        {},
    ),
    (
        errors.QueryCanceled,
        (
            "The server of {path} has cancelled this call: {what}. Call again. If it took too long, let "
            "statement_timeout of the user and of the database be longer than the 10 seconds that a call may wait for "
            "a lock, and than large reads take, or 0."
        ),
        {},
    ),
    (
        errors.DiskFull,
        (
            "The disk of the server of {path} is full: {what}. Nothing of this call has landed. Make room there, "
            "then call again; `rowtime gc` removes old rows."
        ),
        {},
    ),
    (
        errors.LockNotAvailable,
        (
            "Another client keeps the stream at {path} locked ({what}). Nothing of this call was committed. Try again, "
            "and look in pg_stat_activity for a session that hangs."
        ),
        {"lacks": "lock"},
    ),
)
"""What errors mean, and what the call lacks."""


def database_error(error: psycopg.Error, path: str) -> RowtimeError:
    """Translates an error of psycopg about the stream at ``path`` into a RowtimeError."""
    what = _text(error)
    if isinstance(error, _NO_SUCH_TEXT):
        return InvalidOptionError(
            f"The database of {path} cannot store this: {what}. Names of streams, producers and readers may have up to "
            "2,600 bytes, and only characters that the encoding of the database has. Create it with the encoding UTF8.",
            path=path,
        )
    if _has_other_session(error):
        return StoreUnavailableError(
            f"The connection of {path} has lost its session: {what}. Nothing of this call has landed. A connection "
            "pooler that gives the sessions of the server to several clients by turns does that: set pool_mode = "
            "session, or name the server itself in the path.",
            path=path,
        )
    for kinds, meaning, lacks in _MEANT:
        if isinstance(error, kinds):
            return StoreUnavailableError(meaning.format(path=path, what=what), path=path, **lacks)
    return StoreUnavailableError(f"The database of {path} cannot be used just now ({what}). {_advice(what)}", path=path)


def of_commit(error: RowtimeError) -> RowtimeError:
    """The error for whoever commits: if it says to call again, also that the commit may have landed."""
    said = str(error)
    return error if _AGAIN not in said else type(error)(said.replace(_AGAIN, _COMMIT_AGAIN), **error.values)


def _has_other_session(error: psycopg.Error) -> bool:
    """Whether the session is not the one that this client has prepared. Poolers also end connections by a violation."""
    if isinstance(error, errors.ProtocolViolation):
        return error.diag.severity_nonlocalized == "ERROR"
    if isinstance(error, errors.InvalidSchemaName):
        return "search path" in _text(error)  # see one_trip_commit.sql
    return isinstance(error, _OTHER_SESSION)


_REFUSED = {
    'role "[^"]*" does not exist|password authentication failed|no password supplied|no pg_hba.conf entry|'
    "Peer authentication failed": "Check the user, and the password in PGPASSWORD or ~/.pgpass.",
    "permission denied for database": "Grant the user CONNECT on the database.",
    "does not support SSL|SSL error|certificate": "Check sslmode in the path or PGSSLMODE, and the server's ssl.",
}
"""What to do about a connection that a server refuses, whenever it is asked, by what its error says."""

_UNREACHED = {
    "failed to resolve host|could not translate host name": "Check the host",
    "invalid .* value: |invalid port number|bad value for |unrecognized configuration parameter|invalid .*option": (
        "Check the options behind the question mark, and the port,"
    ),
    "session is (not )?read-only|server is (not )?in hot standby mode": (
        "No server there is one that target_session_attrs asks for: wait until one has taken over, or check that "
        "option, and the hosts,"
    ),
}
"""The same for a server that is not even asked, or not the right one."""


_LATER = {
    "too many clients|too many connections|remaining connection slots|no more connections allowed": (
        "The server has as many connections as it may. Close some, or raise max_connections, the CONNECTION LIMIT of "
        "the user or the database, or max_client_conn of the pooler."
    ),
    "No space left on device": "The disk of the server is full. Make room there.",
    "timeout expired": (
        "The server has not answered in time. If it runs, check the host and the port {form}, and that no firewall "
        "drops what is sent there. For a slow one, raise connect_timeout in the path or PGCONNECT_TIMEOUT."
    ),
    "Connection refused": "If the server runs, check host and port {form}.",
}
"""The same where another call may succeed. A connection that is refused has no SQLSTATE."""


def _advice(what: str) -> str:
    """What to do. A connection that fails may be one to another place than is meant."""
    form = "in the path, postgresql://USER@HOST:PORT/DATABASE/STREAM"
    if re.search('database "[^"]*" does not exist', what):
        return f"Check the database {form}: psql -l lists those of a server, and createdb makes one."
    if "authentication method requirement" in what:
        return (
            "A password is used with SCRAM alone, so that no server learns it. Store the user's password with "
            "password_encryption = 'scram-sha-256', or, if you trust the server and the network, say require_auth=md5 "
            "or require_auth=password in the path, or PGREQUIREAUTH in the environment."
        )
    for said, advice in _REFUSED.items():
        if re.search(said, what):
            return f"{advice} The user is that {form}; without one, that of the operating system."
    for said, advice in _UNREACHED.items():
        if re.search(said, what):
            return f"{advice} {form}, and the variables PG* of the environment."
    for said, advice in _LATER.items():
        if re.search(said, what):
            return f"{advice.format(form=form)} {_AGAIN}"
    return _AGAIN


def _text(error: psycopg.Error) -> str:
    """The first line of the server's or the client library's message."""
    return (error.diag.message_primary or str(error).partition("\n")[0] or type(error).__name__).strip()

"""The tables of all streams of a database, in the schema ``rowtime``."""

from importlib.resources import files
from typing import Any

from psycopg import Cursor

from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.store.postgres import eras, one_trip_commit, registrations

VERSION = 8
"""The version of the tables that this code creates, and the largest that it uses."""
TABLES_LOCK = 0x726F7774
"""The advisory lock, ``rowt`` in ASCII, under which the first tables of a database are created, and older ones are
upgraded: versions before 5 create streams under it, of which none may be left without a row in ``gates``."""

TABLES = """
CREATE SCHEMA rowtime;
CREATE TABLE rowtime.version (version integer NOT NULL);
CREATE TABLE rowtime.streams (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE, uuid text NOT NULL,
    schema bytea NOT NULL, settings text NOT NULL, ancestors text NOT NULL
);
CREATE TABLE rowtime.heads (
    stream bigint PRIMARY KEY, name text COLLATE "C" NOT NULL,
    seq bigint NOT NULL DEFAULT 0, floor bigint, largest bigint, rows bigint NOT NULL DEFAULT 0,
    boot text, ahead bigint NOT NULL DEFAULT 0, stamp bigint NOT NULL DEFAULT 0, due bigint,
    attached bigint NOT NULL DEFAULT 0, rejected bigint NOT NULL DEFAULT 0,
    forgotten bigint NOT NULL DEFAULT 0, forgotten_accepted bigint NOT NULL DEFAULT 0,
    forgotten_rejected bigint NOT NULL DEFAULT 0, forgotten_epoch bigint NOT NULL DEFAULT 0,
    rejections bigint NOT NULL DEFAULT 0, rejected_bytes bigint NOT NULL DEFAULT 0,
    rejected_removed bigint NOT NULL DEFAULT 0,
    train_bytes bigint NOT NULL DEFAULT 0, cleaned bigint,
    horizon bigint NOT NULL DEFAULT 0, horizon_floor bigint, horizon_largest bigint,
    horizon_rows bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 20);
CREATE TABLE rowtime.producers (
    stream bigint NOT NULL, name text COLLATE "C" NOT NULL,
    status text NOT NULL, floor bigint, lease bigint, seen bigint NOT NULL, sent bigint NOT NULL,
    let_go boolean NOT NULL, epoch bigint NOT NULL, accepted bigint NOT NULL, rejected bigint NOT NULL,
    number bigint NOT NULL, checkpoint text, declaration text NOT NULL, disorder text NOT NULL, holder text NOT NULL,
    receipt_seq bigint NOT NULL, receipt_floor bigint, PRIMARY KEY (stream, name)
) WITH (fillfactor = 50);
CREATE INDEX floors ON rowtime.producers (stream, status, floor NULLS FIRST, name)
    WHERE status IN ('attached', 'idle', 'expected');
CREATE TABLE rowtime.events (
    stream bigint NOT NULL, seq bigint NOT NULL, kind text NOT NULL,
    producer text COLLATE "C" NOT NULL, time bigint NOT NULL, floor bigint,
    stream_floor bigint, stream_largest bigint, stream_rows bigint NOT NULL,
    rows bigint, least bigint, largest bigint, width smallint, length bigint, checksum bigint,
    PRIMARY KEY (stream, seq)
);
CREATE INDEX spans ON rowtime.events (stream, width, largest, least, seq) WHERE width IS NOT NULL;
CREATE TABLE rowtime.trains (
    stream bigint NOT NULL, seq bigint NOT NULL, part integer NOT NULL,
    bytes bytea NOT NULL, PRIMARY KEY (stream, seq, part)
);
ALTER TABLE rowtime.trains ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE TABLE rowtime.rejected (
    stream bigint NOT NULL, id bigint NOT NULL,
    producer text COLLATE "C" NOT NULL, number bigint NOT NULL, time bigint NOT NULL, reason text NOT NULL,
    bound bigint, at_commit boolean NOT NULL, owner text, origin_producer text, event text, count bigint NOT NULL,
    rows bytea NOT NULL, PRIMARY KEY (stream, id)
);
CREATE INDEX receipts ON rowtime.rejected (stream, producer, number) WHERE at_commit;
CREATE TABLE rowtime.readers (
    stream bigint NOT NULL, name text COLLATE "C" NOT NULL,
    seq bigint NOT NULL, cut bigint, seen bigint NOT NULL, PRIMARY KEY (stream, name)
);
CREATE TABLE rowtime.key_floors (
    stream bigint NOT NULL, producer text COLLATE "C" NOT NULL,
    number bigint NOT NULL, content bytea NOT NULL, PRIMARY KEY (stream, producer, number)
);
CREATE TABLE rowtime.accounts (
    stream bigint NOT NULL, role text NOT NULL, name text COLLATE "C" NOT NULL,
    seen bigint NOT NULL, content text NOT NULL, PRIMARY KEY (stream, role, name)
);
"""
TABLES_2 = """
CREATE TABLE rowtime.objects (
    stream bigint NOT NULL, seq bigint NOT NULL, object text COLLATE "C" NOT NULL, "offset" bigint NOT NULL,
    PRIMARY KEY (stream, seq)
);
CREATE INDEX named ON rowtime.objects (stream, object);
CREATE TABLE rowtime.unnamed_objects (
    stream bigint NOT NULL, object text COLLATE "C" NOT NULL, state text NOT NULL, since bigint NOT NULL,
    PRIMARY KEY (stream, object)
);
CREATE TABLE rowtime.topic_cuts (
    stream bigint NOT NULL, seq bigint NOT NULL, producer text COLLATE "C" NOT NULL, hold bigint, cut text,
    whole boolean NOT NULL, PRIMARY KEY (stream, seq)
);
CREATE INDEX whole_cuts ON rowtime.topic_cuts (stream, producer, seq) WHERE whole;
"""
"""What version 2 adds: trains in objects of a file system, and which messages of Kafka topics bounds follow."""
TABLES_4 = """
ALTER TABLE rowtime.heads ADD COLUMN era bigint NOT NULL DEFAULT 0, DROP CONSTRAINT heads_pkey,
    ADD PRIMARY KEY (stream, era);
ALTER TABLE rowtime.producers ADD COLUMN era bigint NOT NULL DEFAULT 0, DROP CONSTRAINT producers_pkey,
    ADD PRIMARY KEY (stream, name, era);
DROP INDEX rowtime.floors;
CREATE INDEX floors ON rowtime.producers (stream, era, status, floor NULLS FIRST, name)
    WHERE status IN ('attached', 'idle', 'expected');
"""
"""What version 4 adds: eras, which keep commits from looking at old versions of rows."""
TABLES_5 = """
CREATE TABLE rowtime.gates (stream bigint PRIMARY KEY);
INSERT INTO rowtime.gates SELECT DISTINCT stream FROM rowtime.heads;
ALTER TABLE rowtime.readers ADD COLUMN owner text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE rowtime.accounts ADD COLUMN owner text COLLATE "C" NOT NULL DEFAULT '';
DROP FUNCTION IF EXISTS rowtime.commit_plainly;
"""
"""What version 5 adds: rows to lock that readers cannot lock, and whose registrations and statuses there are."""
TABLES_6 = """
ALTER TABLE rowtime.readers ADD COLUMN reads text NOT NULL DEFAULT '';
DROP FUNCTION IF EXISTS rowtime.keep_reader;
"""
"""What version 6 adds: what a registered reader reads."""
TABLES_7 = "DROP FUNCTION IF EXISTS rowtime.commit_plainly;"
_ADDED = {2: TABLES_2, 3: "", 4: TABLES_4, 5: TABLES_5, 6: TABLES_6, 7: TABLES_7, 8: ""}
"""What each version adds, apart from functions. Versions 3 and 7 have other forms of the one that commits, and
version 8 has a limit of names."""
FUNCTIONS = f"{eras.FUNCTION}{one_trip_commit.FUNCTION}{registrations.FUNCTIONS}"
"""The functions of the newest version."""
_UPGRADED = files(__package__).joinpath("upgraded.sql").read_text("utf-8")
_THERE = (
    "SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'version' AND relnamespace = "
    "(SELECT oid FROM pg_namespace WHERE nspname = 'rowtime'))"
)
"""A session that has looked for a table by to_regclass may not find it later in its transaction."""
_OWNER = (
    "SELECT pg_get_userbyid(relowner)::text, pg_has_role(relowner, 'MEMBER') FROM pg_class "
    "WHERE oid = 'rowtime.heads'::regclass"
)
HISTORY = (
    *("heads", "events", "trains", "objects", "unnamed_objects", "producers", "rejected", "readers", "key_floors"),
    *("accounts", "topic_cuts", "gates"),
)
"""The tables that have rows of a stream, besides ``streams``. A foreign key would make each commit lock its row there;
every transaction locks the head instead."""


def lock_tables(cursor: Cursor[Any]) -> None:
    """Keeps others from creating, renaming and deleting streams, until the transaction ends.

    The lock is one that only users have who may do so; not while there are no tables of this version.
    """
    if version(cursor) != VERSION:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (TABLES_LOCK,))
    if version(cursor) is not None:
        cursor.execute("LOCK TABLE rowtime.streams IN SHARE UPDATE EXCLUSIVE MODE")


def create_tables(cursor: Cursor[Any], path: str) -> None:
    """Creates the tables, if there are none, or adds those that an older version did not have.

    Call it in a transaction, under the lock of :func:`lock_tables`.
    """
    require_version(cursor, path)
    found = version(cursor)
    if found is None:
        cursor.execute(TABLES + "".join(_ADDED.values()) + FUNCTIONS)
        cursor.execute("INSERT INTO rowtime.version VALUES (%s)", (VERSION,))
    elif found < VERSION:
        require_owner(cursor, path)
        cursor.execute("".join(sql for later, sql in _ADDED.items() if later > found) + FUNCTIONS + _UPGRADED)
        cursor.execute("UPDATE rowtime.version SET version = %s", (VERSION,))


def require_owner(cursor: Cursor[Any], path: str) -> None:
    """Raises StoreUnavailableError if the user may not add what the tables of an older version do not have."""
    cursor.execute(_OWNER)
    row = cursor.fetchone()
    if row is not None and not row[1]:
        raise StoreUnavailableError(
            f"The tables in the database of {path} have an older version than {VERSION}, which this spark-rowtime "
            f"needs. Open a stream of it once, for example with `rowtime describe`, as {row[0]}, who owns them.",
            path=path,
            lacks="privilege",
        )


def require_version(cursor: Cursor[Any], path: str) -> bool:
    """Returns whether the database has tables. Raises StoreUnavailableError if a newer version has created them."""
    found = version(cursor)
    if found is not None and found > VERSION:
        raise StoreUnavailableError(
            f"The tables in the database of {path} have version {found}, written by a newer spark-rowtime; this "
            f"version uses versions up to {VERSION}. Upgrade spark-rowtime.",
            path=path,
            format=found,
        )
    return found is not None


def version(cursor: Cursor[Any]) -> int | None:
    """Returns the version of the tables; None if there are none."""
    cursor.execute(_THERE)
    row = cursor.fetchone()
    if row is None or not row[0]:
        return None
    cursor.execute("SELECT version FROM rowtime.version")
    row = cursor.fetchone()
    return None if row is None else int(row[0])

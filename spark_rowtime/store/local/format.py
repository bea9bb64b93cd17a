"""The tables of a catalog, in each of its formats; FORMAT.md describes them."""

import sqlite3
from functools import cache

APPLICATION_ID = 0x726F7774
"""``rowt`` in ASCII; the command ``file catalog.db`` shows it."""
FORMAT = 6
"""The format version that this code writes, and the largest that it reads; see FORMAT.md."""

TABLES_1 = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value, seal INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE producers (
    name TEXT PRIMARY KEY, status TEXT NOT NULL, floor INTEGER, lease INTEGER, seen INTEGER NOT NULL,
    sent INTEGER NOT NULL, ticking INTEGER NOT NULL,
    epoch INTEGER NOT NULL, accepted INTEGER NOT NULL, rejected INTEGER NOT NULL, number INTEGER NOT NULL,
    checkpoint TEXT, declaration TEXT NOT NULL, disorder TEXT NOT NULL, holder TEXT NOT NULL,
    receipt_seq INTEGER NOT NULL, receipt_floor INTEGER, seal INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX ticking ON producers (name, status, floor, lease, seen, sent, ticking)
    WHERE status IN ('attached', 'idle');
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, producer TEXT NOT NULL, time INTEGER NOT NULL, floor INTEGER,
    stream_floor INTEGER, stream_largest INTEGER, stream_rows INTEGER NOT NULL,
    rows INTEGER, least INTEGER, largest INTEGER, width INTEGER,
    segment TEXT, offset INTEGER, length INTEGER, checksum INTEGER, seal INTEGER NOT NULL
);
CREATE INDEX spans ON events (width, largest, least) WHERE width IS NOT NULL;
CREATE TABLE rejected (
    id INTEGER PRIMARY KEY, producer TEXT NOT NULL, number INTEGER NOT NULL, time INTEGER NOT NULL,
    reason TEXT NOT NULL, bound INTEGER, at_commit INTEGER NOT NULL, rows BLOB NOT NULL, seal INTEGER NOT NULL
);
CREATE INDEX receipts ON rejected (producer, number) WHERE at_commit;
CREATE TABLE readers (
    name TEXT PRIMARY KEY, seq INTEGER NOT NULL, cut INTEGER, seen INTEGER NOT NULL, seal INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE removed (segment TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;
"""
ADDED_2 = """
CREATE TABLE uptime (boot TEXT NOT NULL, ahead INTEGER NOT NULL, counted INTEGER NOT NULL, seal INTEGER NOT NULL);
CREATE TABLE checkpoints (producer TEXT PRIMARY KEY, value TEXT NOT NULL, seal INTEGER NOT NULL);
CREATE TABLE rejected_totals (bytes INTEGER NOT NULL, removed INTEGER NOT NULL, seal INTEGER NOT NULL);
"""
"""The tables that format 2 adds to those of format 1."""
ADDED_3 = """
DROP INDEX ticking;
CREATE INDEX floors ON producers (status, floor) WHERE status IN ('attached', 'idle', 'expected');
CREATE INDEX leases ON producers (seen + lease) WHERE status IN ('attached', 'idle') AND lease IS NOT NULL;
CREATE INDEX silences ON producers (sent) WHERE status = 'attached';
CREATE TABLE producer_totals (
    attached INTEGER NOT NULL, rejected INTEGER NOT NULL, forgotten INTEGER NOT NULL,
    forgotten_accepted INTEGER NOT NULL, forgotten_rejected INTEGER NOT NULL, forgotten_epoch INTEGER NOT NULL,
    seal INTEGER NOT NULL
);
CREATE TABLE key_floors (
    producer TEXT NOT NULL, number INTEGER NOT NULL, content BLOB NOT NULL, seal INTEGER NOT NULL,
    PRIMARY KEY (producer, number)
);
CREATE TABLE rejected_origins (
    id INTEGER PRIMARY KEY, owner TEXT NOT NULL, producer TEXT, event TEXT, seal INTEGER NOT NULL
);
CREATE TABLE accounts (
    role TEXT NOT NULL, name TEXT NOT NULL, seen INTEGER NOT NULL, content TEXT NOT NULL, seal INTEGER NOT NULL,
    PRIMARY KEY (role, name)
);
"""
"""What format 3 changes: producers are found by floor and by when they are due, and counted.

It also keeps the bounds of each value of a producer's key column, whose bound late rows fell below, and what queries
report about themselves.
"""
ADDED_4 = """
CREATE TABLE topic_cuts (
    seq INTEGER PRIMARY KEY, producer TEXT NOT NULL, hold INTEGER, cut TEXT, number INTEGER NOT NULL,
    seal INTEGER NOT NULL
);
CREATE INDEX cuts_of ON topic_cuts (producer, seq);
CREATE TABLE cut_ends (
    producer TEXT PRIMARY KEY, whole INTEGER, parts INTEGER NOT NULL, last INTEGER NOT NULL, seal INTEGER NOT NULL
) WITHOUT ROWID;
"""
"""The tables that format 4 adds: which messages of Kafka topics bounds follow."""
ADDED_5 = "ALTER TABLE readers ADD COLUMN reads TEXT;"
"""What format 5 adds: what a registered reader reads."""
ADDED_6 = """
CREATE TABLE redo (
    id INTEGER PRIMARY KEY, segment TEXT NOT NULL, offset INTEGER NOT NULL, seal INTEGER NOT NULL, content BLOB NOT NULL
);
"""
"""The table that format 6 adds: trains whose segment may not be synced."""
UPGRADES = {2: ADDED_2, 3: ADDED_3, 4: ADDED_4, 5: ADDED_5, 6: ADDED_6}
"""By format: the statements that make it of the format before."""
TABLES = TABLES_1 + "".join(UPGRADES.values())

STATEMENTS = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"


@cache
def tables(version: int) -> frozenset[tuple[str]]:
    """Returns the statements that made the tables and indexes of a catalog of format ``version``."""
    db = sqlite3.connect(":memory:")
    try:
        db.executescript(TABLES_1 + "".join(UPGRADES[later] for later in range(2, version + 1)))
        return frozenset(db.execute(STATEMENTS))
    finally:
        db.close()

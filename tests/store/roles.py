"""The roles of the guide on PostgreSQL, in a database of their own that no superuser owns."""

import re
from pathlib import Path

import spark_rowtime as rt
from tests.postgresserver import PostgresServer

GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "postgresql.md"
SCHEMA = "rowtime TIMESTAMP NOT NULL, n INT"


def blocks() -> tuple[str, str]:
    """The statements of the guide that make the roles, and those that give them their rights."""
    makes, gives = re.findall(r"```sql\n((?:CREATE ROLE|REVOKE CONNECT).*?)```", GUIDE.read_text(), re.DOTALL)
    return makes, gives


def row_security() -> str:
    """The statements of the guide that bind producers to logins."""
    (found,) = re.findall(r"```sql\n(ALTER TABLE rowtime.producers ENABLE.*?)```", GUIDE.read_text(), re.DOTALL)
    return str(found)


def make_database(server: PostgresServer, name: str) -> str:
    """Makes a database that ``dba_NAME`` owns, with the stream ``orders`` and the guide's roles. Returns the owner.

    Each role has two users: ``viewer_ann_NAME``, ``viewer_bob_NAME`` and so on.
    """
    owner = f"dba_{name}"
    server.execute(f"CREATE ROLE {owner} LOGIN CREATEROLE", database="postgres")
    server.execute(f"CREATE DATABASE {name} OWNER {owner}", database="postgres")
    rt.createStream(server.url("orders", user=owner, database=name), SCHEMA)
    give(server, name, owner)
    for role in ("viewer", "reader", "writer", "owner"):
        for who in ("ann", "bob"):
            server.execute(f"CREATE ROLE {role}_{who}_{name} LOGIN IN ROLE rowtime_{role}", database="postgres")
    return owner


def give(server: PostgresServer, database: str, user: str) -> None:
    """Runs the statements of the guide as that user. Roles are those of the server, and are made once."""
    makes, gives = blocks()
    if not server.execute("SELECT 1 FROM pg_roles WHERE rolname = 'rowtime_owner'"):
        run(server, makes, "postgres", "rowtime")
    run(server, gives.replace("DATABASE shop", f"DATABASE {database}"), database, user)


def run(server: PostgresServer, statements: str, database: str, user: str) -> None:
    """Runs statements, with semicolons between, as that user."""
    with server.connect(user=user, database=database) as connection:
        for statement in filter(str.strip, statements.split(";")):
            connection.execute(statement)

"""The functions of the database by which readers register, and queries that read report: each its own."""

from importlib.resources import files

from spark_rowtime.store.base import FORGET_ACCOUNT_MICROS

FUNCTIONS = (
    files(__package__)
    .joinpath("registrations.sql")
    .read_text("utf-8")
    .replace("- FORGET_ACCOUNT", f"- {FORGET_ACCOUNT_MICROS}")
)
KEEP = "SELECT rowtime.keep_reader(%s, %s, %s, %s, %s, %s)"
"""Of the stream, its name, the reader, its seq and its cut, at the uptime. It returns false if the stream is gone."""
FORGET = "SELECT rowtime.forget_reader(%s, %s)"
"""Of the stream and the reader. It returns whether the reader was registered."""
REPORT = "SELECT rowtime.report_account(%s, %s, %s, %s, %s, %s)"
"""Of the stream, its name, the role and the name of the account, at the uptime, its content. It returns false if the
stream is gone. It locks nothing."""

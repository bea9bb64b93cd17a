"""A stream that is not there: commands that could create one do so only where they are told to."""

from spark_rowtime.errors import StreamNotFoundError


def uncreated(error: StreamNotFoundError, schema_from: str) -> StreamNotFoundError:
    """The error, with what to write; ``schema_from``: what the command would take the schema from."""
    hint = f"Look at the path; if it is right, add --create, which makes the stream with the schema of {schema_from}."
    return StreamNotFoundError(f"{error} {hint}", **error.values)

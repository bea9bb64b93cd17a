"""The error for a missing stream in commands that can create it, but do so only with --create."""

from spark_rowtime.errors import StreamNotFoundError


def uncreated(error: StreamNotFoundError, schema_from: str) -> StreamNotFoundError:
    """Returns the error with a hint. ``schema_from`` is what the command would take the schema from."""
    hint = f"If the path is right, add --create, which creates the stream with the schema of {schema_from}."
    return StreamNotFoundError(f"{error} {hint}", **error.values)

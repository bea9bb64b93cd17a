"""The checkpoint of a query as a crash leaves it."""

from pathlib import Path


def lose_last_commit(checkpoint: Path) -> int:
    """As if the driver had died after the sink's commit and before Spark's own. Returns the batch, which runs again."""
    last = max(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdecimal())
    lose_commit(checkpoint, last)
    return last


def lose_commit(checkpoint: Path, batch: int) -> None:
    """The same of a batch that may not have come so far."""
    for name in (str(batch), f".{batch}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)

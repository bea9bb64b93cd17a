"""A module that creates a file when it is imported. No query may import it."""

import tempfile
from pathlib import Path

MARK = Path(tempfile.gettempdir()) / "rowtime-test-imported"
MARK.touch()


class Feed:
    schema = "rowtime TIMESTAMP NOT NULL"

    def run(self, sink: object) -> None:
        """Never called."""

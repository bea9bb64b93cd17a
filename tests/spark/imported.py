"""A module that leaves a mark when it is imported: no query may bring that about."""

import tempfile
from pathlib import Path

MARK = Path(tempfile.gettempdir()) / "rowtime-test-imported"
MARK.touch()


class Feed:
    schema = "rowtime TIMESTAMP NOT NULL"

    def run(self, sink: object) -> None:
        """Is never reached."""

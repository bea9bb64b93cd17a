"""A module that creates a file when it is imported. No query may import it."""

from tests.spark.import_mark import MARK

MARK.touch()


class Feed:
    schema = "rowtime TIMESTAMP NOT NULL"

    def run(self, sink: object) -> None:
        """Never called."""

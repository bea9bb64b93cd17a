"""Eras: what keeps a commit from looking at old versions of rows.

The server keeps each version of a row that some transaction of the database may still see, as long as that stays open:
``pg_dump``, or somebody's query. An index leads to all of them. So the rows that commits change, the stream's head and
the producers that count, are indexed by an era, too, and looked for by the newest. After some commits, the next era
begins: the rows get its number, and what came before is no longer looked at.

Law: each producer that counts has the era of the head.
"""

from spark_rowtime.store.postgres.connection import Statement

ERA_COMMITS, ERA_PRODUCERS = 64, 8
"""An era ends after so many events, and after so many times the attached producers: each of them is then written."""
CURRENT = "(SELECT era FROM rowtime.heads WHERE stream = %s ORDER BY era DESC LIMIT 1)"
"""The era of a stream, in a query."""
OF_MEMBERS = f"stream = %s AND era = {CURRENT} AND "
"""The producers that count. The stream is given twice."""
_BEGIN = "SELECT rowtime.begin_era(%s, %s, %s)"
FUNCTION = """
CREATE OR REPLACE FUNCTION rowtime.begin_era(of_stream bigint, old_era bigint, new_era bigint)
RETURNS void LANGUAGE sql AS $$
    UPDATE rowtime.heads SET era = new_era WHERE stream = of_stream AND era = old_era;
    UPDATE rowtime.producers SET era = new_era WHERE stream = of_stream AND era = old_era
        AND status IN ('attached', 'idle', 'expected');
$$;
"""


def ends(seq: int, era: int, attached: int) -> bool:
    """Returns whether the era ends with the event ``seq``."""
    return seq - era >= max(ERA_COMMITS, ERA_PRODUCERS * attached)


def begin(stream: int, old: int, new: int) -> Statement:
    """Returns the statement that begins an era. Run it after all other changes of the transaction."""
    return _BEGIN, (stream, old, new)

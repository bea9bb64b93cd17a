"""Eras: what keeps a commit from looking at old versions of rows.

The server keeps each version of a row that some transaction of the database may still see, as long as that stays open:
``pg_dump``, or somebody's query. An index leads to all of them. So the rows that commits change, the stream's head and
the producers that count, are indexed by an era, too, and looked for by the newest. After some commits, the next era
begins: the rows get its number, and what came before is no longer looked at.

Law: each producer that counts has the era of the head. A client whose version knows no eras would bring one back with
an old era, and the bound would run past it. The tables refuse that.
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
RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE rowtime.heads SET era = new_era WHERE stream = of_stream AND era = old_era;
    UPDATE rowtime.producers SET era = new_era WHERE stream = of_stream AND era = old_era
        AND status IN ('attached', 'idle', 'expected');
$$;
REVOKE ALL ON FUNCTION rowtime.begin_era FROM PUBLIC;
CREATE OR REPLACE FUNCTION rowtime.require_era() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.era <> (SELECT era FROM rowtime.heads WHERE stream = NEW.stream ORDER BY era DESC LIMIT 1) THEN
        RAISE EXCEPTION 'the tables are of a newer version of spark-rowtime than this process: '
            'start the process again with that version';
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER of_the_era AFTER UPDATE OF status ON rowtime.producers FOR EACH ROW
    WHEN (OLD.status NOT IN ('attached', 'idle', 'expected') AND NEW.status IN ('attached', 'idle', 'expected'))
    EXECUTE FUNCTION rowtime.require_era();
"""
"""An era changes rows of all producers, also where row security lets a writer change only its own."""


def ends(seq: int, era: int, attached: int) -> bool:
    """Returns whether the era ends with the event ``seq``."""
    return seq - era >= max(ERA_COMMITS, ERA_PRODUCERS * attached)


def begin(stream: int, old: int, new: int) -> Statement:
    """Returns the statement that begins an era. Run it after all other changes of the transaction."""
    return _BEGIN, (stream, old, new)

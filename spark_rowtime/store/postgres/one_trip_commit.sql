-- A commit in one round trip: the only second writing of what spark_rowtime/store/ledger.py decides. It makes the commit
-- of at most one train, and of a bound, of a producer that is attached and becomes neither late nor complete, with
-- nothing beyond maxAhead; otherwise, and if anything is due, it returns null and changes nothing. Law
-- (tests/store/test_postgres_one_trip_commit.py): what it makes is what the ledger makes. ERA_COMMITS and ERA_PRODUCERS
-- are those of spark_rowtime/store/postgres/eras.py. A search path of its own would be set and taken back at each call,
-- which costs 3 % of it; so it refuses any other, before it has looked for anything by it.
CREATE OR REPLACE FUNCTION rowtime.commit_plainly(
    of_stream bigint, stream_name text, of_producer text, of_epoch bigint, of_session text, new_number bigint,
    promised bigint, new_checkpoint text, new_disorder text, idle_timeout bigint, max_ahead bigint,
    given_boot text, given_micros bigint, given_wall bigint,
    new_rows bigint, new_least bigint, new_largest bigint, new_width smallint, new_length bigint, new_checksum bigint,
    content bytea,
    OUT landed_seq bigint, OUT landed_floor bigint, OUT uptime bigint, OUT cleaned bigint, OUT train_bytes bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    head record; own record; weakest bigint; new_own bigint; new_floor bigint; new_seq bigint; now_up bigint;
    wall bigint;
BEGIN
    IF pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.<>) 'pg_catalog, pg_temp' THEN
        RAISE invalid_schema_name USING MESSAGE = 'the search path of this session is not pg_catalog, pg_temp';
    END IF;
    PERFORM 1 FROM rowtime.gates WHERE stream = of_stream FOR NO KEY UPDATE;
    SELECT h.xmin AS version, h.seq, h.floor, h.largest, h.rows, h.boot, h.ahead, h.stamp, h.due, h.train_bytes,
        h.cleaned, h.attached, h.era INTO head FROM rowtime.heads h WHERE h.stream = of_stream AND h.name = stream_name
        ORDER BY h.era DESC LIMIT 1;
    wall := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    now_up := COALESCE(given_micros, wall) + head.ahead;
    IF NOT FOUND OR now_up < head.stamp OR now_up > head.due OR new_least < head.floor
        OR GREATEST(new_largest, promised) > COALESCE(given_wall, wall) + max_ahead
        OR head.boot IS DISTINCT FROM COALESCE(given_boot, extract(epoch FROM pg_postmaster_start_time())::text)
    THEN RETURN; END IF;
    SELECT p.floor, p.lease INTO own FROM rowtime.producers p WHERE p.stream = of_stream AND p.name = of_producer
        AND p.era = head.era AND p.status = 'attached' AND p.epoch = of_epoch AND p.number + 1 = new_number
        AND p.holder = COALESCE(of_session, p.holder);
    IF NOT FOUND OR (new_rows IS NULL AND promised <= own.floor) THEN RETURN; END IF;
    new_own := GREATEST(own.floor, promised, CASE WHEN new_rows IS NULL THEN head.floor END);
    new_floor := head.floor;
    PERFORM 1 FROM rowtime.producers p WHERE p.stream = of_stream AND p.era = head.era
        AND p.status = 'expected' LIMIT 1;
    IF NOT FOUND AND new_own IS NOT NULL THEN
        SELECT p.floor INTO weakest FROM rowtime.producers p
            WHERE p.stream = of_stream AND p.era = head.era AND p.status = 'attached' AND p.name <> of_producer
            ORDER BY p.floor NULLS FIRST, p.name LIMIT 1;
        IF NOT FOUND THEN weakest := new_own; END IF;
        IF weakest IS NOT NULL THEN new_floor := GREATEST(head.floor, LEAST(weakest, new_own)); END IF;
    END IF;
    new_seq := head.seq + 1;
    UPDATE rowtime.heads h SET seq = new_seq, floor = new_floor, largest = GREATEST(head.largest, new_largest),
        rows = head.rows + COALESCE(new_rows, 0), stamp = now_up,
        due = LEAST(head.due, now_up + own.lease, now_up + idle_timeout),
        train_bytes = head.train_bytes + COALESCE(new_length, 0)
        WHERE h.stream = of_stream AND h.era = head.era AND h.xmin = head.version;
    IF NOT FOUND THEN RETURN; END IF;
    INSERT INTO rowtime.events VALUES (of_stream, new_seq, 'sent', of_producer, now_up, new_own, new_floor,
        GREATEST(head.largest, new_largest), head.rows + COALESCE(new_rows, 0),
        new_rows, new_least, new_largest, new_width, new_length, new_checksum);
    IF new_rows IS NOT NULL THEN INSERT INTO rowtime.trains VALUES (of_stream, new_seq, 0, content); END IF;
    UPDATE rowtime.producers p SET floor = new_own, seen = now_up, sent = now_up,
        accepted = accepted + COALESCE(new_rows, 0), number = new_number,
        checkpoint = COALESCE(new_checkpoint, checkpoint), disorder = new_disorder,
        receipt_seq = new_seq, receipt_floor = new_floor
        WHERE p.stream = of_stream AND p.name = of_producer AND p.era = head.era;
    IF new_seq - head.era >= GREATEST(ERA_COMMITS, ERA_PRODUCERS * head.attached) THEN
        PERFORM rowtime.begin_era(of_stream, head.era, new_seq);
    END IF;
    landed_seq := new_seq; landed_floor := new_floor; uptime := now_up;
    cleaned := head.cleaned; train_bytes := head.train_bytes + COALESCE(new_length, 0);
END $$;

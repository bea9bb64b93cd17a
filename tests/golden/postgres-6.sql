SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA rowtime;
CREATE FUNCTION rowtime.begin_era(of_stream bigint, old_era bigint, new_era bigint) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    UPDATE rowtime.heads SET era = new_era WHERE stream = of_stream AND era = old_era;
    UPDATE rowtime.producers SET era = new_era WHERE stream = of_stream AND era = old_era
        AND status IN ('attached', 'idle', 'expected');
$$;
CREATE FUNCTION rowtime.commit_plainly(of_stream bigint, stream_name text, of_producer text, of_epoch bigint, new_number bigint, promised bigint, new_checkpoint text, new_disorder text, idle_timeout bigint, max_ahead bigint, given_boot text, given_micros bigint, given_wall bigint, new_rows bigint, new_least bigint, new_largest bigint, new_width smallint, new_length bigint, new_checksum bigint, content bytea, OUT landed_seq bigint, OUT landed_floor bigint, OUT uptime bigint, OUT cleaned bigint, OUT train_bytes bigint) RETURNS record
    LANGUAGE plpgsql
    AS $$
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
        AND p.era = head.era AND p.status = 'attached' AND p.epoch = of_epoch AND p.number + 1 = new_number;
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
    IF new_seq - head.era >= GREATEST(64, 8 * head.attached) THEN
        PERFORM rowtime.begin_era(of_stream, head.era, new_seq);
    END IF;
    landed_seq := new_seq; landed_floor := new_floor; uptime := now_up;
    cleaned := head.cleaned; train_bytes := head.train_bytes + COALESCE(new_length, 0);
END $$;
CREATE FUNCTION rowtime.forget_reader(of_stream bigint, reader text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE whose text;
BEGIN
    DELETE FROM rowtime.readers r WHERE r.stream = of_stream AND r.name = reader AND rowtime.may_replace(r.owner);
    IF FOUND THEN RETURN true; END IF;
    SELECT r.owner INTO whose FROM rowtime.readers r WHERE r.stream = of_stream AND r.name = reader;
    IF FOUND THEN PERFORM rowtime.refuse('the registration of this reader', whose); END IF;
    RETURN false;
END $$;
CREATE FUNCTION rowtime.keep_reader(of_stream bigint, stream_name text, reader text, at_seq bigint, at_cut bigint, now_up bigint, what text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE whose text; up bigint;
BEGIN
    PERFORM 1 FROM rowtime.gates WHERE stream = of_stream FOR KEY SHARE;
    up := rowtime.uptime(of_stream, stream_name, now_up);
    IF up IS NULL THEN RETURN false; END IF;
    IF what NOT IN ('', 'stream', 'topic') THEN
        RAISE invalid_parameter_value USING MESSAGE = 'a reader reads a stream or a topic';
    END IF;
    IF NOT EXISTS (SELECT FROM rowtime.readers r WHERE r.stream = of_stream AND r.name = reader) THEN
        PERFORM rowtime.require_room(reader, count(*), 0) FROM rowtime.readers r
            WHERE r.stream = of_stream AND r.owner = session_user;
    END IF;
    INSERT INTO rowtime.readers AS r (stream, name, seq, cut, seen, owner, reads)
        VALUES (of_stream, reader, GREATEST(0, LEAST(at_seq, (SELECT h.seq FROM rowtime.heads h
            WHERE h.stream = of_stream ORDER BY h.era DESC LIMIT 1))),
            CASE WHEN at_cut IS NOT NULL THEN GREATEST(0, LEAST(at_cut, 253402300800000000)) END, up, session_user, what)
        ON CONFLICT (stream, name) DO UPDATE SET seq = excluded.seq, cut = excluded.cut, seen = excluded.seen,
            reads = excluded.reads,
            owner = CASE WHEN r.owner <> '' AND rowtime.may_replace(r.owner) THEN r.owner ELSE excluded.owner END
        WHERE rowtime.may_replace(r.owner) OR (rowtime.may_write(session_user) AND NOT rowtime.may_write(r.owner));
    IF NOT FOUND THEN
        SELECT r.owner INTO whose FROM rowtime.readers r WHERE r.stream = of_stream AND r.name = reader;
        PERFORM rowtime.refuse('the registration of this reader', whose);
    END IF;
    RETURN true;
END $$;
CREATE FUNCTION rowtime.may_replace(owner text) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT owner IN ('', session_user::text) OR has_table_privilege(session_user, 'rowtime.readers', 'UPDATE')
$$;
CREATE FUNCTION rowtime.may_write(owner text) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT owner = '' OR EXISTS (SELECT FROM pg_roles known WHERE known.rolname = owner
        AND has_table_privilege(known.oid, 'rowtime.heads', 'UPDATE'))
$$;
CREATE FUNCTION rowtime.refuse(what text, owner text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    RAISE insufficient_privilege USING MESSAGE = format('%s is of the user %I', what, owner);
END $$;
CREATE FUNCTION rowtime.report_account(of_stream bigint, stream_name text, of_role text, of_name text, now_up bigint, new_content text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE whose text; up bigint := rowtime.uptime(of_stream, stream_name, now_up);
BEGIN
    IF up IS NULL THEN RETURN false; END IF;
    IF of_role <> 'reader' AND NOT has_table_privilege(session_user, 'rowtime.accounts', 'UPDATE') THEN
        RAISE insufficient_privilege USING MESSAGE = format('permission denied for accounts of the role %L', of_role);
    END IF;
    PERFORM rowtime.require_room(of_role || of_name, count(*),
        octet_length(new_content) + COALESCE(sum(octet_length(a.content)), 0)) FROM rowtime.accounts a
        WHERE a.stream = of_stream AND a.owner = session_user AND (a.role, a.name) <> (of_role, of_name);
    DELETE FROM rowtime.accounts a WHERE a.stream = of_stream AND a.role <> 'writer'
        AND a.seen < up - 604800000000 AND (a.role, a.name) <> (of_role, of_name);
    INSERT INTO rowtime.accounts AS a (stream, role, name, seen, content, owner)
        VALUES (of_stream, of_role, of_name, up, new_content, session_user)
        ON CONFLICT (stream, role, name) DO UPDATE SET seen = excluded.seen, content = excluded.content,
            owner = CASE a.owner WHEN '' THEN excluded.owner ELSE a.owner END
        WHERE rowtime.may_replace(a.owner);
    IF NOT FOUND THEN
        SELECT a.owner INTO whose FROM rowtime.accounts a
            WHERE a.stream = of_stream AND a.role = of_role AND a.name = of_name;
        PERFORM rowtime.refuse('the account of this query', whose);
    END IF;
    RETURN true;
END $$;
CREATE FUNCTION rowtime.require_era() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF NEW.era <> (SELECT era FROM rowtime.heads WHERE stream = NEW.stream ORDER BY era DESC LIMIT 1) THEN
        RAISE EXCEPTION 'the tables are of a newer version of spark-rowtime than this process: '
            'start the process again with that version';
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION rowtime.require_room(name text, others bigint, bytes bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF name ~ '[\u0001-\u001f\u007f-\u009f\u2028\u2029]' THEN
        RAISE invalid_parameter_value USING MESSAGE = 'a name has a control character';
    ELSIF others >= 1000 THEN
        RAISE configuration_limit_exceeded USING MESSAGE = format('%I has %s of them already', session_user, others);
    ELSIF bytes > 16777216 THEN
        RAISE configuration_limit_exceeded USING MESSAGE = format('those of %I would have %s bytes', session_user, bytes);
    END IF;
END $$;
CREATE FUNCTION rowtime.uptime(of_stream bigint, stream_name text, given bigint) RETURNS bigint
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT GREATEST(h.stamp, LEAST(given, h.ahead + (extract(epoch FROM clock_timestamp()) * 1000000)::bigint))
        FROM rowtime.heads h WHERE h.stream = of_stream AND h.name = stream_name ORDER BY h.era DESC LIMIT 1
$$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE rowtime.accounts (
    stream bigint NOT NULL,
    role text NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    seen bigint NOT NULL,
    content text NOT NULL,
    owner text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE rowtime.events (
    stream bigint NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    producer text NOT NULL COLLATE pg_catalog."C",
    "time" bigint NOT NULL,
    floor bigint,
    stream_floor bigint,
    stream_largest bigint,
    stream_rows bigint NOT NULL,
    rows bigint,
    "least" bigint,
    largest bigint,
    width smallint,
    length bigint,
    checksum bigint
);
CREATE TABLE rowtime.gates (
    stream bigint NOT NULL
);
CREATE TABLE rowtime.heads (
    stream bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    seq bigint DEFAULT 0 NOT NULL,
    floor bigint,
    largest bigint,
    rows bigint DEFAULT 0 NOT NULL,
    boot text,
    ahead bigint DEFAULT 0 NOT NULL,
    stamp bigint DEFAULT 0 NOT NULL,
    due bigint,
    attached bigint DEFAULT 0 NOT NULL,
    rejected bigint DEFAULT 0 NOT NULL,
    forgotten bigint DEFAULT 0 NOT NULL,
    forgotten_accepted bigint DEFAULT 0 NOT NULL,
    forgotten_rejected bigint DEFAULT 0 NOT NULL,
    forgotten_epoch bigint DEFAULT 0 NOT NULL,
    rejections bigint DEFAULT 0 NOT NULL,
    rejected_bytes bigint DEFAULT 0 NOT NULL,
    rejected_removed bigint DEFAULT 0 NOT NULL,
    train_bytes bigint DEFAULT 0 NOT NULL,
    cleaned bigint,
    horizon bigint DEFAULT 0 NOT NULL,
    horizon_floor bigint,
    horizon_largest bigint,
    horizon_rows bigint DEFAULT 0 NOT NULL,
    era bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='20');
CREATE TABLE rowtime.key_floors (
    stream bigint NOT NULL,
    producer text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    content bytea NOT NULL
);
CREATE TABLE rowtime.objects (
    stream bigint NOT NULL,
    seq bigint NOT NULL,
    object text NOT NULL COLLATE pg_catalog."C",
    "offset" bigint NOT NULL
);
CREATE TABLE rowtime.producers (
    stream bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL,
    floor bigint,
    lease bigint,
    seen bigint NOT NULL,
    sent bigint NOT NULL,
    let_go boolean NOT NULL,
    epoch bigint NOT NULL,
    accepted bigint NOT NULL,
    rejected bigint NOT NULL,
    number bigint NOT NULL,
    checkpoint text,
    declaration text NOT NULL,
    disorder text NOT NULL,
    holder text NOT NULL,
    receipt_seq bigint NOT NULL,
    receipt_floor bigint,
    era bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE rowtime.readers (
    stream bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    cut bigint,
    seen bigint NOT NULL,
    owner text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    reads text DEFAULT ''::text NOT NULL
);
CREATE TABLE rowtime.rejected (
    stream bigint NOT NULL,
    id bigint NOT NULL,
    producer text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    "time" bigint NOT NULL,
    reason text NOT NULL,
    bound bigint,
    at_commit boolean NOT NULL,
    owner text,
    origin_producer text,
    event text,
    count bigint NOT NULL,
    rows bytea NOT NULL
);
CREATE TABLE rowtime.streams (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    uuid text NOT NULL,
    schema bytea NOT NULL,
    settings text NOT NULL,
    ancestors text NOT NULL
);
ALTER TABLE rowtime.streams ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME rowtime.streams_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE rowtime.topic_cuts (
    stream bigint NOT NULL,
    seq bigint NOT NULL,
    producer text NOT NULL COLLATE pg_catalog."C",
    hold bigint,
    cut text,
    whole boolean NOT NULL
);
CREATE TABLE rowtime.trains (
    stream bigint NOT NULL,
    seq bigint NOT NULL,
    part integer NOT NULL,
    bytes bytea NOT NULL
);
ALTER TABLE ONLY rowtime.trains ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE TABLE rowtime.unnamed_objects (
    stream bigint NOT NULL,
    object text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL,
    since bigint NOT NULL
);
CREATE TABLE rowtime.version (
    version integer NOT NULL
);
INSERT INTO rowtime.events VALUES (1, 1, 'joined', 'shop', 1795545148473822, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO rowtime.events VALUES (1, 2, 'sent', 'shop', 1795545149179882, 1767607200000000, 1767607200000000, 1767607200000000, 1, 1, 1767607200000000, 1767607200000000, 0, 208, 3085683661);
INSERT INTO rowtime.events VALUES (1, 3, 'left', 'shop', 1795545149252555, NULL, 1767607200000000, 1767607200000000, 1, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO rowtime.gates VALUES (1);
INSERT INTO rowtime.heads VALUES (1, 'orders', 3, 1767607200000000, 1767607200000000, 1, '1795545146.988117', 0, 1795545149252555, NULL, 0, 1, 0, 0, 0, 0, 1, 208, 0, 208, NULL, 0, NULL, NULL, 0, 0);
INSERT INTO rowtime.producers VALUES (1, 'shop', 'left', 1767607200000000, NULL, 1795545149252555, 1795545149179882, false, 1, 1, 1, 3, 'one', '{}', '', 'f9e7c1a7-1200-41c3-9b91-92016c202033', 2, 1767607200000000, 0);
INSERT INTO rowtime.readers VALUES (1, 'alerts', 1, NULL, 1795545149301092, 'dba', '');
INSERT INTO rowtime.rejected VALUES (1, 1, 'shop', 3, 1795545149241293, 'late', 1767607200000000, false, 'producer', 'shop', NULL, 1, '\xffffffffb800000014000000000000000c0016000600050008000c000c0000000003040018000000100000000000000000000a0018000c00040008000a0000005c000000100000000100000000000000000000000400000000000000000000000000000000000000000000000000000008000000000000000800000000000000000000000000000008000000000000000400000000000000000000000200000001000000000000000000000000000000010000000000000000000000000000000084ae48a04706000200000000000000');
INSERT INTO rowtime.streams OVERRIDING SYSTEM VALUE VALUES (1, 'orders', 'c9c4c1dd-4cbc-4288-a492-68c2ea3bd529', '\xffffffffd00000001000000000000a000c000600050008000a000000000104000c00000008000800000004000800000004000000020000005c00000014000000100014000800060007000c00000010001000000000000102100000001c0000000400000000000000010000006e00000008000c0008000700080000000000000120000000100014000800000007000c0000001000100000000000000a1000000020000000040000000000000007000000726f7774696d650008000c0006000800080000000000020004000000030000005554430000000000', '{"boundsBeforeRows": true, "retainRejected": 268435456}', '{}');
INSERT INTO rowtime.trains VALUES (1, 2, 0, '\xffffffffb800000014000000000000000c0016000600050008000c000c0000000003040018000000100000000000000000000a0018000c00040008000a0000005c000000100000000100000000000000000000000400000000000000000000000000000000000000000000000000000008000000000000000800000000000000000000000000000008000000000000000400000000000000000000000200000001000000000000000000000000000000010000000000000000000000000000000028421fa14706000100000000000000');
INSERT INTO rowtime.version VALUES (6);
SELECT pg_catalog.setval('rowtime.streams_id_seq', 1, true);
ALTER TABLE ONLY rowtime.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (stream, role, name);
ALTER TABLE ONLY rowtime.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (stream, seq);
ALTER TABLE ONLY rowtime.gates
    ADD CONSTRAINT gates_pkey PRIMARY KEY (stream);
ALTER TABLE ONLY rowtime.heads
    ADD CONSTRAINT heads_pkey PRIMARY KEY (stream, era);
ALTER TABLE ONLY rowtime.key_floors
    ADD CONSTRAINT key_floors_pkey PRIMARY KEY (stream, producer, number);
ALTER TABLE ONLY rowtime.objects
    ADD CONSTRAINT objects_pkey PRIMARY KEY (stream, seq);
ALTER TABLE ONLY rowtime.producers
    ADD CONSTRAINT producers_pkey PRIMARY KEY (stream, name, era);
ALTER TABLE ONLY rowtime.readers
    ADD CONSTRAINT readers_pkey PRIMARY KEY (stream, name);
ALTER TABLE ONLY rowtime.rejected
    ADD CONSTRAINT rejected_pkey PRIMARY KEY (stream, id);
ALTER TABLE ONLY rowtime.streams
    ADD CONSTRAINT streams_name_key UNIQUE (name);
ALTER TABLE ONLY rowtime.streams
    ADD CONSTRAINT streams_pkey PRIMARY KEY (id);
ALTER TABLE ONLY rowtime.topic_cuts
    ADD CONSTRAINT topic_cuts_pkey PRIMARY KEY (stream, seq);
ALTER TABLE ONLY rowtime.trains
    ADD CONSTRAINT trains_pkey PRIMARY KEY (stream, seq, part);
ALTER TABLE ONLY rowtime.unnamed_objects
    ADD CONSTRAINT unnamed_objects_pkey PRIMARY KEY (stream, object);
CREATE INDEX floors ON rowtime.producers USING btree (stream, era, status, floor NULLS FIRST, name) WHERE (status = ANY (ARRAY['attached'::text, 'idle'::text, 'expected'::text]));
CREATE INDEX named ON rowtime.objects USING btree (stream, object);
CREATE INDEX receipts ON rowtime.rejected USING btree (stream, producer, number) WHERE at_commit;
CREATE INDEX spans ON rowtime.events USING btree (stream, width, largest, "least", seq) WHERE (width IS NOT NULL);
CREATE INDEX whole_cuts ON rowtime.topic_cuts USING btree (stream, producer, seq) WHERE whole;
CREATE TRIGGER of_the_era AFTER UPDATE OF status ON rowtime.producers FOR EACH ROW WHEN (((old.status <> ALL (ARRAY['attached'::text, 'idle'::text, 'expected'::text])) AND (new.status = ANY (ARRAY['attached'::text, 'idle'::text, 'expected'::text])))) EXECUTE FUNCTION rowtime.require_era();
GRANT USAGE ON SCHEMA rowtime TO rowtime_viewer;
REVOKE ALL ON FUNCTION rowtime.begin_era(of_stream bigint, old_era bigint, new_era bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION rowtime.begin_era(of_stream bigint, old_era bigint, new_era bigint) TO rowtime_writer;
GRANT ALL ON FUNCTION rowtime.begin_era(of_stream bigint, old_era bigint, new_era bigint) TO rowtime_owner;
GRANT ALL ON FUNCTION rowtime.commit_plainly(of_stream bigint, stream_name text, of_producer text, of_epoch bigint, new_number bigint, promised bigint, new_checkpoint text, new_disorder text, idle_timeout bigint, max_ahead bigint, given_boot text, given_micros bigint, given_wall bigint, new_rows bigint, new_least bigint, new_largest bigint, new_width smallint, new_length bigint, new_checksum bigint, content bytea, OUT landed_seq bigint, OUT landed_floor bigint, OUT uptime bigint, OUT cleaned bigint, OUT train_bytes bigint) TO rowtime_writer;
REVOKE ALL ON FUNCTION rowtime.forget_reader(of_stream bigint, reader text) FROM PUBLIC;
GRANT ALL ON FUNCTION rowtime.forget_reader(of_stream bigint, reader text) TO rowtime_reader;
GRANT ALL ON FUNCTION rowtime.forget_reader(of_stream bigint, reader text) TO rowtime_owner;
REVOKE ALL ON FUNCTION rowtime.keep_reader(of_stream bigint, stream_name text, reader text, at_seq bigint, at_cut bigint, now_up bigint, what text) FROM PUBLIC;
GRANT ALL ON FUNCTION rowtime.keep_reader(of_stream bigint, stream_name text, reader text, at_seq bigint, at_cut bigint, now_up bigint, what text) TO rowtime_owner;
GRANT ALL ON FUNCTION rowtime.keep_reader(of_stream bigint, stream_name text, reader text, at_seq bigint, at_cut bigint, now_up bigint, what text) TO rowtime_reader;
REVOKE ALL ON FUNCTION rowtime.report_account(of_stream bigint, stream_name text, of_role text, of_name text, now_up bigint, new_content text) FROM PUBLIC;
GRANT ALL ON FUNCTION rowtime.report_account(of_stream bigint, stream_name text, of_role text, of_name text, now_up bigint, new_content text) TO rowtime_reader;
GRANT ALL ON FUNCTION rowtime.report_account(of_stream bigint, stream_name text, of_role text, of_name text, now_up bigint, new_content text) TO rowtime_owner;
GRANT ALL ON FUNCTION rowtime.require_era() TO rowtime_writer;
GRANT SELECT ON TABLE rowtime.accounts TO rowtime_viewer;
GRANT INSERT,UPDATE ON TABLE rowtime.accounts TO rowtime_writer;
GRANT INSERT,DELETE,UPDATE ON TABLE rowtime.accounts TO rowtime_owner;
GRANT SELECT ON TABLE rowtime.events TO rowtime_viewer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE rowtime.events TO rowtime_writer;
GRANT SELECT,UPDATE ON TABLE rowtime.gates TO rowtime_writer;
GRANT INSERT,DELETE,UPDATE ON TABLE rowtime.gates TO rowtime_owner;
GRANT SELECT ON TABLE rowtime.gates TO rowtime_viewer;
GRANT SELECT ON TABLE rowtime.heads TO rowtime_viewer;
GRANT UPDATE ON TABLE rowtime.heads TO rowtime_writer;
GRANT INSERT,DELETE,UPDATE ON TABLE rowtime.heads TO rowtime_owner;
GRANT SELECT ON TABLE rowtime.key_floors TO rowtime_viewer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE rowtime.key_floors TO rowtime_writer;
GRANT SELECT ON TABLE rowtime.objects TO rowtime_viewer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE rowtime.objects TO rowtime_writer;
GRANT SELECT ON TABLE rowtime.producers TO rowtime_viewer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE rowtime.producers TO rowtime_writer;
GRANT SELECT ON TABLE rowtime.readers TO rowtime_viewer;
GRANT INSERT,DELETE,UPDATE ON TABLE rowtime.readers TO rowtime_owner;
GRANT SELECT ON TABLE rowtime.rejected TO rowtime_viewer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE rowtime.rejected TO rowtime_writer;
GRANT SELECT ON TABLE rowtime.streams TO rowtime_viewer;
GRANT INSERT,DELETE,UPDATE ON TABLE rowtime.streams TO rowtime_owner;
GRANT SELECT ON TABLE rowtime.topic_cuts TO rowtime_viewer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE rowtime.topic_cuts TO rowtime_writer;
GRANT SELECT ON TABLE rowtime.trains TO rowtime_viewer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE rowtime.trains TO rowtime_writer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE rowtime.unnamed_objects TO rowtime_writer;
GRANT SELECT ON TABLE rowtime.version TO rowtime_viewer;

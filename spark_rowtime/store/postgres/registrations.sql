-- What a reader may change: registrations and accounts of its own. It has no right to their tables; these functions run
-- with the rights of the tables' owner. Law (tests/store/test_postgres_readers.py): what a user has registered, no other
-- user replaces or removes, except one who may update the tables; and the registration of a user who may only read goes
-- to one who may write and registers under its name, so that nobody is there before its query. What has no owner yet, as
-- of a copy, or of version 4, is that of the first who registers under its name. No time is later than it is, or earlier than the stream's last
-- event, no position is beyond the log's ends, no cut beyond all times, no name breaks a line, and names, and what one
-- user can have there, have a limit. Names in capitals are those of Python.
CREATE OR REPLACE FUNCTION rowtime.may_replace(owner text) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT owner IN ('', session_user::text) OR has_table_privilege(session_user, 'rowtime.readers', 'UPDATE')
$$;
CREATE OR REPLACE FUNCTION rowtime.may_write(owner text) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT owner = '' OR EXISTS (SELECT FROM pg_roles known WHERE known.rolname = owner
        AND has_table_privilege(known.oid, 'rowtime.heads', 'UPDATE'))
$$;
CREATE OR REPLACE FUNCTION rowtime.refuse(what text, owner text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE insufficient_privilege USING MESSAGE = format('%s is of the user %I', what, owner);
END $$;
CREATE OR REPLACE FUNCTION rowtime.require_room(name text, others bigint, bytes bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF name ~ '[\u0001-\u001f\u007f-\u009f\u2028\u2029]' THEN
        RAISE invalid_parameter_value USING MESSAGE = 'a name has a control character';
    ELSIF octet_length(name) > MOST_NAME THEN
        RAISE program_limit_exceeded USING MESSAGE = 'a name has more than MOST_NAME bytes';
    ELSIF others >= MOST_ENTRIES THEN
        RAISE configuration_limit_exceeded USING MESSAGE = format('%I has %s of them already', session_user, others);
    ELSIF bytes > MOST_BYTES THEN
        RAISE configuration_limit_exceeded USING MESSAGE = format('those of %I would have %s bytes', session_user, bytes);
    END IF;
END $$;
CREATE OR REPLACE FUNCTION rowtime.uptime(of_stream bigint, stream_name text, given bigint) RETURNS bigint LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
    SELECT GREATEST(h.stamp, LEAST(given, h.ahead + (extract(epoch FROM clock_timestamp()) * 1000000)::bigint))
        FROM rowtime.heads h WHERE h.stream = of_stream AND h.name = stream_name ORDER BY h.era DESC LIMIT 1
$$;
CREATE OR REPLACE FUNCTION rowtime.keep_reader(
    of_stream bigint, stream_name text, reader text, at_seq bigint, at_cut bigint, now_up bigint, what text
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
            CASE WHEN at_cut IS NOT NULL THEN GREATEST(0, LEAST(at_cut, END_OF_TIME)) END, up, session_user, what)
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
CREATE OR REPLACE FUNCTION rowtime.forget_reader(of_stream bigint, reader text)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE whose text;
BEGIN
    DELETE FROM rowtime.readers r WHERE r.stream = of_stream AND r.name = reader AND rowtime.may_replace(r.owner);
    IF FOUND THEN RETURN true; END IF;
    SELECT r.owner INTO whose FROM rowtime.readers r WHERE r.stream = of_stream AND r.name = reader;
    IF FOUND THEN PERFORM rowtime.refuse('the registration of this reader', whose); END IF;
    RETURN false;
END $$;
CREATE OR REPLACE FUNCTION rowtime.report_account(
    of_stream bigint, stream_name text, of_role text, of_name text, now_up bigint, new_content text
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
        AND a.seen < up - FORGET_ACCOUNT AND (a.role, a.name) <> (of_role, of_name);
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
REVOKE ALL ON FUNCTION rowtime.keep_reader, rowtime.forget_reader, rowtime.report_account FROM PUBLIC;

-- After an upgrade: what is new belongs to the owner of the tables, also if a superuser has upgraded them, so that no
-- function runs with more rights than that owner has, and that owner can replace each with the next upgrade; and who had
-- a right has the one that takes its place.
DO $$
DECLARE
    owner text := (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'rowtime.heads'::regclass);
    given record;
BEGIN
    EXECUTE format('ALTER TABLE rowtime.gates OWNER TO %I', owner);
    FOR given IN
        SELECT known.oid::regprocedure::text AS its_function FROM pg_proc known
        WHERE known.pronamespace = 'rowtime'::regnamespace AND known.prokind = 'f'
    LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO %I', given.its_function, owner);
    END LOOP;
    FOR given IN
        SELECT known.relname AS its_table, acl.privilege_type AS what, CASE acl.grantee WHEN 0 THEN 'PUBLIC'
            ELSE quote_ident(pg_get_userbyid(acl.grantee)) END AS who
        FROM pg_class known CROSS JOIN aclexplode(known.relacl) acl WHERE known.relnamespace = 'rowtime'::regnamespace
    LOOP
        IF given.its_table = 'heads' AND given.what IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') THEN
            EXECUTE format('GRANT %s ON rowtime.gates TO %s', given.what, given.who);
        END IF;
        IF given.its_table = 'heads' AND given.what = 'UPDATE' THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION rowtime.begin_era, rowtime.commit_plainly TO %s', given.who);
        ELSIF given.its_table = 'readers' AND given.what = 'INSERT' THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION rowtime.keep_reader, rowtime.forget_reader, '
                'rowtime.report_account TO %s', given.who);
        END IF;
    END LOOP;
    FOR given IN
        SELECT CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END AS who
        FROM pg_proc known CROSS JOIN aclexplode(known.proacl) acl WHERE known.oid = 'rowtime.forget_reader'::regproc
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION rowtime.keep_reader TO %s', given.who);
    END LOOP;
END $$;

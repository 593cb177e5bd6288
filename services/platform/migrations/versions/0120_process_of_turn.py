"""Process that runs a turn, so that the others see at once that it is gone."""

from alembic import op

revision = "0120"
down_revision = "0117"


def upgrade() -> None:
    """Add the process and whether another one runs the turn again; and what finds turns without a process.

    A process holds an advisory lock by its number for as long as it is connected. Who has just lost the connection
    still renews its leases, and after a start of the server everybody first connects again. The process that asks
    renews what it runs: turns of its own that it does not renew were opened by a statement without an answer.
    """
    op.execute("""
        ALTER TABLE turns ADD COLUMN process bigint, ADD COLUMN run_again boolean NOT NULL DEFAULT false;
        COMMENT ON COLUMN turns.process IS
            'number of the process that runs the turn, which it holds as a shared advisory lock';
        COMMENT ON COLUMN turns.run_again IS
            'whether the first process was gone before it had shown anything, and another one began again';
        CREATE FUNCTION is_abandoned(lease_expires_at timestamptz, process bigint) RETURNS boolean
        LANGUAGE sql STABLE SET search_path = pg_catalog, public AS $$
            SELECT CASE
                WHEN lease_expires_at > now() + interval '15 minutes' THEN true
                WHEN now() - pg_postmaster_start_time() BETWEEN interval '0 seconds' AND interval '10 seconds'
                    AND lease_expires_at > now() - interval '2 minutes' AND process IS DISTINCT FROM 0 THEN false
                WHEN lease_expires_at < now() THEN true
                WHEN process IS NULL OR lease_expires_at > now() + interval '12 seconds' THEN false
                ELSE NOT EXISTS (
                    SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
                      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
                      AND (l.classid::bigint << 32) | l.objid::bigint = process)
            END
        $$;
        CREATE FUNCTION abandoned_turns(asking bigint, OUT tenant_id uuid, OUT turn_id uuid, OUT status text)
        RETURNS SETOF record
        LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
            (SELECT t.tenant_id, t.id, t.status FROM turns t
             WHERE t.status IN ('waiting', 'running')
               AND is_abandoned(t.lease_expires_at, CASE WHEN t.process = asking THEN 0 ELSE t.process END)
             ORDER BY t.accepted_at, t.id LIMIT 100)
            UNION ALL
            (SELECT t.tenant_id, t.id, t.status FROM turns t
             WHERE t.status = 'paused' AND t.lease_expires_at < now() LIMIT 100)
        $$;
    """)

"""Turns that wait for the results of a client's tools."""

from alembic import op

revision = "0107"
down_revision = "0104"


def upgrade() -> None:
    """Add the status; a turn that has waited for too long is found like one without a process."""
    op.execute("""
        ALTER TABLE turns DROP CONSTRAINT turns_status_check;
        ALTER TABLE turns ADD CONSTRAINT turns_status_check
            CHECK (status IN ('waiting', 'running', 'paused', 'completed', 'partial', 'failed', 'cancelled'))
            NOT VALID;
        ALTER TABLE turns VALIDATE CONSTRAINT turns_status_check;
        COMMENT ON COLUMN turns.status IS 'paused = its client runs tools and brings their results';
        CREATE INDEX turns_paused ON turns (conversation_id, lease_expires_at) WHERE status = 'paused';
        CREATE OR REPLACE FUNCTION expired_turns(OUT tenant_id uuid, OUT turn_id uuid, OUT status text)
        RETURNS SETOF record
        LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
            (SELECT t.tenant_id, t.id, t.status FROM turns t
             WHERE t.status IN ('waiting', 'running')
               AND (t.lease_expires_at < now() OR t.lease_expires_at > now() + interval '15 minutes')
             ORDER BY t.accepted_at, t.id LIMIT 100)
            UNION ALL
            (SELECT t.tenant_id, t.id, t.status FROM turns t
             WHERE t.status = 'paused' AND t.lease_expires_at < now() LIMIT 100)
        $$;
    """)

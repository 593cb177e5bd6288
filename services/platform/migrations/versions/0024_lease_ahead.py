"""A lease far in the future has expired as well: the clock was set back since it was taken."""

from alembic import op

revision = "0024"
down_revision = "0023"

EXPIRED_TURNS = """
CREATE OR REPLACE FUNCTION expired_turns(OUT tenant_id uuid, OUT turn_id uuid, OUT status text)
RETURNS SETOF record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT t.tenant_id, t.id, t.status FROM public.turns t
    WHERE t.status IN ('waiting', 'running')
      AND (t.lease_expires_at < now() OR t.lease_expires_at > now() + interval '15 minutes')
    ORDER BY t.accepted_at, t.id LIMIT 100
$$;
"""


def upgrade() -> None:
    """Replace the function; an older program calls it as before."""
    op.execute(EXPIRED_TURNS)

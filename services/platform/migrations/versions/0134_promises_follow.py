"""Promises follow the events that they name: a change of core memory marks them, and they are read once more."""

from alembic import op

revision = "0134"
down_revision = "0133"

_UPGRADE = """
ALTER TABLE promises ADD COLUMN event text CHECK (event IN ('read', 'changed', 'gone'));
COMMENT ON COLUMN promises.event IS
    'it follows an event of the user: read = it is due then; changed = memory has changed since; '
    'gone = it was cancelled with the event; NULL = it names none';
CREATE INDEX promises_changed ON promises (user_id) WHERE event = 'changed';

CREATE FUNCTION note_events_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE promises SET event = 'changed'
    WHERE user_id = coalesce(NEW.user_id, OLD.user_id) AND tenant_id = coalesce(NEW.tenant_id, OLD.tenant_id)
      AND event IS NOT NULL AND (state = 'open' OR event = 'gone');
    RETURN NULL;
END $$;
CREATE TRIGGER note_events_changed AFTER INSERT OR DELETE OR UPDATE OF content ON core_memory_blocks
    FOR EACH ROW EXECUTE FUNCTION note_events_changed();

CREATE OR REPLACE FUNCTION users_with_due_promises(at timestamptz, OUT tenant_id uuid, OUT user_id uuid)
RETURNS SETOF record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT DISTINCT due.tenant_id, due.user_id FROM (
        (SELECT p.tenant_id, p.user_id FROM promises p
         WHERE p.state = 'open' AND p.due_at <= at ORDER BY p.due_at LIMIT 1000)
        UNION ALL
        (SELECT p.tenant_id, p.user_id FROM promises p WHERE p.event = 'changed' LIMIT 1000)
    ) AS due
$$;
"""


def upgrade() -> None:
    """Add the mark, what sets it, and the search for what has it."""
    op.get_bind().connection.cursor().execute(_UPGRADE)

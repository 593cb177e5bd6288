"""Turns that wait to be filed, changes by filing that were not told yet, sentences that repeat texts of others."""

from alembic import op

revision = "0101"
down_revision = "0100"

_UPGRADE = """
ALTER TABLE messages ADD COLUMN foreign_spans integer[];
COMMENT ON COLUMN messages.foreign_spans IS
    'of an answer of foreign origin: where sentences that repeat texts of others begin and end; NULL = all of it';

ALTER TABLE memory_operations ADD COLUMN untold boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN memory_operations.untold IS 'made by filing, and no turn has told the user of it yet';
CREATE INDEX memory_operations_untold ON memory_operations (user_id, tenant_id) WHERE untold;

ALTER TABLE turns ADD COLUMN to_file boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN turns.to_file IS 'what was said in it waits to be filed';
CREATE INDEX turns_to_file ON turns (conversation_id, tenant_id) WHERE to_file;

ALTER TABLE turns NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_operations NO FORCE ROW LEVEL SECURITY;
UPDATE turns t SET to_file = true
WHERE t.status = 'completed' AND t.started_at > now() - interval '3 days' AND NOT EXISTS (
    SELECT FROM memory_operations o JOIN conversations c ON c.user_id = o.user_id AND c.id = t.conversation_id
    WHERE o.type = 'memory_filing' AND o.results->'turns' ? t.id::text);
ALTER TABLE turns FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_operations FORCE ROW LEVEL SECURITY;

-- A turn of the version before, which does not know the column, waits as well.
ALTER TABLE turns ALTER COLUMN to_file SET DEFAULT true;
"""


def upgrade() -> None:
    """Mark the turns that the version before has not filed: it would not do so any more either."""
    op.get_bind().connection.cursor().execute(_UPGRADE)

"""Note in which conversations a game or story goes on, so that its turns are held as they come."""

from alembic import op

revision = "0103"
down_revision = "0102"

_UPGRADE = """
ALTER TABLE conversations ADD COLUMN in_story boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN conversations.in_story IS 'a game or story that the user has announced goes on';
COMMENT ON COLUMN episodes.held_at IS
    'of a turn of a game or story, which is not recalled; without retraction_id filing has not decided yet';

ALTER TABLE conversations NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_operations NO FORCE ROW LEVEL SECURITY;
UPDATE conversations c SET in_story = true FROM (
    SELECT DISTINCT ON (conversation_id) conversation_id, results->'story' = 'true' AS goes_on
    FROM memory_operations WHERE type = 'memory_filing' ORDER BY conversation_id, at DESC, id DESC
) AS filed WHERE filed.conversation_id = c.id AND filed.goes_on;
ALTER TABLE conversations FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_operations FORCE ROW LEVEL SECURITY;
"""


def upgrade() -> None:
    """Take over what the log of operations says."""
    op.get_bind().connection.cursor().execute(_UPGRADE)

"""Keep what clients of OpenAI's API note on a conversation, as its metadata."""

from alembic import op

revision = "0109"
down_revision = "0107"

_UPGRADE = """
ALTER TABLE conversations ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN conversations.metadata IS 'what a client of /v1/conversations notes on it: texts by names';
"""


def upgrade() -> None:
    """Add an empty object to each conversation."""
    op.get_bind().connection.cursor().execute(_UPGRADE)

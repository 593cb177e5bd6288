"""Note what users feel, and in which words of their message they say it."""

from alembic import op

revision = "0115"
down_revision = "0107"

_UPGRADE = """
ALTER TABLE messages ADD COLUMN feeling text, ADD COLUMN feeling_span integer[];
COMMENT ON COLUMN messages.feeling IS 'what the user feels, as their own words in it say';
COMMENT ON COLUMN messages.feeling_span IS 'where these words begin and end';
CREATE INDEX messages_feeling ON messages (conversation_id, created_at) WHERE feeling IS NOT NULL;

CREATE FUNCTION drop_feeling() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.feeling := NULL;
    NEW.feeling_span := NULL;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION drop_feeling() IS 'Words that have changed may say nothing of what the user feels any more.';
CREATE TRIGGER drop_feeling BEFORE UPDATE OF content, memory_text ON messages FOR EACH ROW WHEN (
    OLD.feeling IS NOT NULL AND (OLD.content, OLD.memory_text) IS DISTINCT FROM (NEW.content, NEW.memory_text)
) EXECUTE FUNCTION drop_feeling();
ALTER TABLE messages ALTER feeling SET STATISTICS 0, ALTER feeling_span SET STATISTICS 0;
"""


def upgrade() -> None:
    """Add the columns."""
    op.get_bind().connection.cursor().execute(_UPGRADE)

"""Retraction: what a user asked memory to forget, to leave out or to correct, and how that is taken back."""

from alembic import op

revision = "0012"
down_revision = "0011"

# `retraction_id` is the operation in `memory_operations` that changed the row last. Of a message `memory_text` is
# what memory keeps in place of its content; one that is off the record is shown in its own conversation only.
COLUMNS = """
ALTER TABLE messages
    ADD COLUMN retracted_at  timestamptz,
    ADD COLUMN retraction_id uuid,
    ADD COLUMN memory_text   text,
    ADD COLUMN off_record    boolean NOT NULL DEFAULT false;
CREATE INDEX messages_retracted ON messages (retraction_id) WHERE retraction_id IS NOT NULL;
ALTER TABLE episodes
    ADD COLUMN retracted_at  timestamptz,
    ADD COLUMN retraction_id uuid,
    ADD COLUMN held_at       timestamptz;  -- until it is decided whether its turn is to be remembered
CREATE INDEX episodes_retracted ON episodes (retraction_id) WHERE retraction_id IS NOT NULL;
ALTER TABLE memory_operations ADD COLUMN undone_at timestamptz;
CREATE INDEX memory_operations_parts ON memory_operations ((trigger->>'part_of')) WHERE trigger ? 'part_of';
-- When something in it was retracted, or brought back.
ALTER TABLE conversations ADD COLUMN retracted_at timestamptz;
ALTER TABLE turns ADD COLUMN memory_changes jsonb NOT NULL DEFAULT '[]';
ALTER TABLE context_epochs ADD COLUMN ended_by text;  -- why the next prompt begins another one
"""

# What prompts, recall and summaries read of the messages. The reader's rights apply, not the owner's.
VIEW = """
CREATE VIEW remembered_messages WITH (security_invoker = true) AS
SELECT id, tenant_id, conversation_id, turn_id, role, coalesce(memory_text, content) AS content, parts, completed,
       token_count, created_at, external_id, speaker, topic_id, uncovered, inner_voice
FROM messages WHERE retracted_at IS NULL;
"""

# The planner's statistics keep samples of a column's values, also of a user who was erased.
NO_SAMPLES = """
ALTER TABLE messages ALTER COLUMN memory_text SET STATISTICS 0;
ALTER TABLE turns ALTER COLUMN memory_changes SET STATISTICS 0;
"""


def upgrade() -> None:
    """Nothing is retracted."""
    for statements in (COLUMNS, VIEW, NO_SAMPLES):
        op.execute(statements)

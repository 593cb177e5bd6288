"""Origins: of a message whether foreign words went into it, which everything derived from it inherits."""

from alembic import op

revision = "0030"
down_revision = "0029"
serves_from = "0029"  # nothing that is stored means anything else

# NULL = the user's or the assistant's words and nothing else. The values sort from the least trusted on, so that
# the least trusted of several origins is the smallest.
ORIGINS = """
CREATE TYPE foreign_origin AS ENUM ('document', 'import', 'tool', 'operator');
ALTER TABLE messages ADD COLUMN origin foreign_origin;
ALTER TABLE messages NO FORCE ROW LEVEL SECURITY;
UPDATE messages SET origin = 'import' WHERE import_key IS NOT NULL;
ALTER TABLE messages FORCE ROW LEVEL SECURITY;
CREATE INDEX messages_of_foreign_origin ON messages (conversation_id, origin) WHERE origin IS NOT NULL;
"""


def upgrade() -> None:
    """What was imported before is known; of older answers it is not known what they were made from."""
    op.execute(ORIGINS)

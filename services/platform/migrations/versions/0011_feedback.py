"""What users think of answers."""

from alembic import op

revision = "0011"
down_revision = "0010"

# Of a message and not of a turn: an imported message has no turn.
FEEDBACK = """
CREATE TABLE feedback (
    message_id uuid PRIMARY KEY REFERENCES messages ON DELETE CASCADE,
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    rating     smallint NOT NULL CHECK (rating IN (-1, 1)),
    comment    text,
    tags       text[] NOT NULL DEFAULT '{}',
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
ALTER TABLE feedback ENABLE ROW LEVEL SECURITY;
ALTER TABLE feedback FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON feedback
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
"""

# Turns of a conversation are listed by time.
TURNS = """
CREATE INDEX turns_of_conversation ON turns (conversation_id, accepted_at, id);
"""

# The planner's statistics keep samples of a column's values, also of a user who was erased.
NO_SAMPLES = """
ALTER TABLE feedback ALTER COLUMN comment SET STATISTICS 0;
ALTER TABLE feedback ALTER COLUMN tags SET STATISTICS 0;
"""


def upgrade() -> None:
    """A new table, and an index."""
    for statements in (FEEDBACK, TURNS, NO_SAMPLES):
        op.execute(statements)

"""Memories and messages that a conversation never uses, and lists of all turns of a tenant."""

from alembic import op

revision = "0020"
down_revision = "0019"

TABLE = """
CREATE TABLE recall_exclusions (
    id              uuid PRIMARY KEY,
    tenant_id       uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    episode_id      uuid REFERENCES episodes ON DELETE CASCADE,
    message_id      uuid REFERENCES messages ON DELETE CASCADE,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (num_nonnulls(episode_id, message_id) = 1),
    UNIQUE NULLS NOT DISTINCT (conversation_id, episode_id, message_id)
);
CREATE INDEX recall_exclusions_of_episode ON recall_exclusions (episode_id) WHERE episode_id IS NOT NULL;
CREATE INDEX recall_exclusions_of_message ON recall_exclusions (message_id) WHERE message_id IS NOT NULL;
ALTER TABLE recall_exclusions ENABLE ROW LEVEL SECURITY;
ALTER TABLE recall_exclusions FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON recall_exclusions
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
"""


TURNS = "CREATE INDEX turns_of_tenant ON turns (tenant_id, accepted_at, id)"


def upgrade() -> None:
    """Existing conversations exclude nothing."""
    op.execute(TABLE)
    op.execute(TURNS)

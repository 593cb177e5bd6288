"""Visits, and the summaries of users' local days."""

from alembic import op

revision = "0006"
down_revision = "0005"

# The messages of a visit are those of its conversation from `started_at` to `last_active_at`: visits of a
# conversation never overlap, so no message has to name its own.
VISITS = """
CREATE TABLE visits (
    id                   uuid PRIMARY KEY,
    tenant_id            uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    conversation_id      uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    user_id              uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    expert_id            uuid NOT NULL REFERENCES experts,
    started_at           timestamptz NOT NULL,
    last_active_at       timestamptz NOT NULL,
    ended_at             timestamptz,
    end_reason           text CHECK (end_reason IN ('closed', 'idle')),
    message_count        integer NOT NULL,  -- complete ones
    summary              text,
    key_topics           jsonb NOT NULL DEFAULT '[]',
    summary_generated_at timestamptz,
    summarised_count     integer NOT NULL DEFAULT 0,  -- of the messages that the summary was made from
    daily_due_at         timestamptz,  -- when its day is to be looked at next
    CHECK ((ended_at IS NULL) = (end_reason IS NULL)),
    CHECK (started_at <= last_active_at)
);
CREATE UNIQUE INDEX visits_open ON visits (conversation_id) WHERE ended_at IS NULL;
CREATE INDEX visits_of_conversation ON visits (conversation_id, started_at);
CREATE INDEX visits_of_user ON visits (user_id, started_at, id);
CREATE INDEX visits_idle ON visits (tenant_id, last_active_at) WHERE ended_at IS NULL;
CREATE INDEX visits_due ON visits (tenant_id, daily_due_at) WHERE daily_due_at IS NOT NULL;
"""

# A day is as long as the user's zone has it. `visit_ids` and `message_count` say what the summary was made from.
DAYS = """
CREATE TABLE daily_summaries (
    user_id       uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    expert_id     uuid NOT NULL REFERENCES experts ON DELETE CASCADE,
    date          date NOT NULL,
    tenant_id     uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    timezone      text NOT NULL,
    summary       text NOT NULL,
    key_topics    jsonb NOT NULL DEFAULT '[]',
    session_count integer NOT NULL,
    message_count integer NOT NULL,
    visit_ids     uuid[] NOT NULL,
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (user_id, expert_id, date)
);
"""

ISOLATION = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON {table}
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
"""

# The planner's statistics keep samples of a column's values, also of a user who was erased.
NO_SAMPLES = """
ALTER TABLE visits ALTER COLUMN summary SET STATISTICS 0;
ALTER TABLE visits ALTER COLUMN key_topics SET STATISTICS 0;
ALTER TABLE daily_summaries ALTER COLUMN summary SET STATISTICS 0;
ALTER TABLE daily_summaries ALTER COLUMN key_topics SET STATISTICS 0;
"""


def upgrade() -> None:
    """Both tables are new."""
    op.execute(VISITS)
    op.execute(DAYS)
    for table in ("visits", "daily_summaries"):
        op.execute(ISOLATION.format(table=table))
    op.execute(NO_SAMPLES)

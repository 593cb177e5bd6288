"""Rolling summaries, archived topics, and the epochs of prompts."""

from alembic import op

revision = "0004"
down_revision = "0003"

EXPERTS = """
ALTER TABLE experts DROP CONSTRAINT experts_context_strategy_check;
ALTER TABLE experts ADD CONSTRAINT experts_context_strategy_check
    CHECK (context_strategy IN ('summary', 'topics', 'window'));
"""

# A part is the summary of a stretch that never changes again: a full regeneration reads parts, not the whole
# transcript.
SUMMARIES = """
CREATE TABLE conversation_summaries (
    conversation_id            uuid PRIMARY KEY REFERENCES conversations ON DELETE CASCADE,
    tenant_id                  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    summary                    text NOT NULL,
    summary_version            integer NOT NULL,
    covered_through_created_at timestamptz NOT NULL,
    covered_through_message_id uuid NOT NULL,
    covered_message_count      integer NOT NULL,
    increments_since_full      integer NOT NULL,
    rewritten_version          integer NOT NULL DEFAULT 0,
    updated_at                 timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE summary_parts (
    conversation_id    uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    part               integer NOT NULL,
    tenant_id          uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    summary            text NOT NULL,
    through_created_at timestamptz NOT NULL,
    through_message_id uuid NOT NULL,
    message_count      integer NOT NULL,
    PRIMARY KEY (conversation_id, part)
);
"""

TOPICS = """
CREATE TABLE topics (
    id               uuid PRIMARY KEY,
    tenant_id        uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    conversation_id  uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    user_id          uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    expert_id        uuid NOT NULL REFERENCES experts,
    title            text NOT NULL CHECK (length(title) BETWEEN 1 AND 100),
    summary          text NOT NULL,
    keywords         jsonb NOT NULL DEFAULT '[]',
    message_count    integer NOT NULL CHECK (message_count > 0),
    first_message_id uuid NOT NULL,
    last_message_id  uuid NOT NULL,
    first_message_at timestamptz NOT NULL,
    last_message_at  timestamptz NOT NULL,
    status           text NOT NULL DEFAULT 'archived' CHECK (status IN ('archived')),
    created_at       timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX topics_in_order ON topics (conversation_id, last_message_at, id);
ALTER TABLE messages
    ADD COLUMN topic_id uuid REFERENCES topics ON DELETE SET NULL,
    ADD COLUMN uncovered boolean NOT NULL DEFAULT false;
CREATE INDEX messages_of_topic ON messages (topic_id) WHERE topic_id IS NOT NULL;
CREATE INDEX messages_unarchived ON messages (conversation_id, created_at, id)
    WHERE topic_id IS NULL AND completed;
CREATE INDEX messages_uncovered ON messages (conversation_id, created_at, id) WHERE uncovered;
"""

# A message that is committed with an older time than the summary's covered point would be neither in the
# summary nor behind it. The lock makes the insert wait for a summary that is being written, and a summary for
# inserts that are under way; each statement of the function sees what was committed meanwhile.
LATE = """
CREATE FUNCTION note_late_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM conversations WHERE id = NEW.conversation_id FOR KEY SHARE;
    UPDATE messages SET uncovered = true
    FROM conversation_summaries s
    WHERE messages.id = NEW.id AND s.conversation_id = NEW.conversation_id
      AND (s.covered_through_created_at, s.covered_through_message_id) >= (NEW.created_at, NEW.id);
    RETURN NULL;
END
$$;
CREATE TRIGGER note_late AFTER INSERT OR UPDATE OF completed, created_at ON messages
    FOR EACH ROW WHEN (NEW.completed) EXECUTE FUNCTION note_late_message();
"""

EPOCHS = """
CREATE TABLE context_epochs (
    conversation_id         uuid PRIMARY KEY REFERENCES conversations ON DELETE CASCADE,
    tenant_id               uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    number                  integer NOT NULL,
    strategy                text NOT NULL,
    reason                  text NOT NULL,
    begun_at                timestamptz NOT NULL,
    summary                 text NOT NULL,
    summary_version         integer NOT NULL,
    topics                  jsonb NOT NULL,
    core_versions           jsonb NOT NULL DEFAULT '{}',
    history_from_created_at timestamptz,
    history_from_message_id uuid,
    prefix                  jsonb NOT NULL
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
ALTER TABLE conversation_summaries ALTER COLUMN summary SET STATISTICS 0;
ALTER TABLE summary_parts ALTER COLUMN summary SET STATISTICS 0;
ALTER TABLE topics ALTER COLUMN title SET STATISTICS 0;
ALTER TABLE topics ALTER COLUMN summary SET STATISTICS 0;
ALTER TABLE topics ALTER COLUMN keywords SET STATISTICS 0;
ALTER TABLE context_epochs ALTER COLUMN summary SET STATISTICS 0;
ALTER TABLE context_epochs ALTER COLUMN topics SET STATISTICS 0;
ALTER TABLE context_epochs ALTER COLUMN prefix SET STATISTICS 0;
"""


def upgrade() -> None:
    """Tables before what refers to them."""
    for statements in (EXPERTS, SUMMARIES, TOPICS, LATE, EPOCHS):
        op.execute(statements)
    for table in ("conversation_summaries", "summary_parts", "topics", "context_epochs"):
        op.execute(ISOLATION.format(table=table))
    op.execute(NO_SAMPLES)

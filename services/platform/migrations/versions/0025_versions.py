"""Versions of memory: what an episode, a message or the summary of a day was until it changed."""

from alembic import op

revision = "0025"
down_revision = "0024"

# When the service learned it, which of an import is not when it was said. The id of an older row holds the
# milliseconds of its making (UUID version 7).
LEARNED = """
ALTER TABLE episodes ADD COLUMN learned_at timestamptz;
ALTER TABLE episodes ALTER COLUMN learned_at SET DEFAULT clock_timestamp();
ALTER TABLE episodes NO FORCE ROW LEVEL SECURITY;
UPDATE episodes SET learned_at = CASE
    WHEN substr(id::text, 15, 1) = '7'
    THEN to_timestamp(('x0000' || substr(replace(id::text, '-', ''), 1, 12))::bit(64)::bigint / 1000.0)
    ELSE created_at END
WHERE learned_at IS NULL;
ALTER TABLE episodes ALTER COLUMN learned_at SET NOT NULL;
"""

# `was` holds the columns that can change, as they were until `closed_at`. Versions of an episode or a message go
# with its row. Of the summary of a day, which can go without its versions, the whole row is kept.
VERSIONS = """
CREATE TABLE memory_versions (
    id         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    space_id   uuid REFERENCES spaces ON DELETE CASCADE,
    episode_id uuid REFERENCES episodes ON DELETE CASCADE,
    message_id uuid REFERENCES messages ON DELETE CASCADE,
    day_id     uuid,
    closed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    was        jsonb NOT NULL,
    CHECK (num_nonnulls(episode_id, message_id, day_id) = 1)
);
CREATE INDEX memory_versions_of_user ON memory_versions (user_id, closed_at);
CREATE INDEX memory_versions_of_episode ON memory_versions (episode_id, closed_at) WHERE episode_id IS NOT NULL;
CREATE INDEX memory_versions_of_message ON memory_versions (message_id, closed_at) WHERE message_id IS NOT NULL;
CREATE INDEX memory_versions_of_space ON memory_versions (space_id) WHERE space_id IS NOT NULL;
ALTER TABLE memory_versions ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_versions FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON memory_versions
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
ALTER TABLE memory_versions ALTER COLUMN was SET STATISTICS 0;
"""

# What was closed before: an episode that holds instead was learned then; a run that retired one ended then.
BACKFILL = """
ALTER TABLE memory_versions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE compression_runs NO FORCE ROW LEVEL SECURITY;
INSERT INTO memory_versions (tenant_id, user_id, episode_id, closed_at, was)
SELECT e.tenant_id, e.user_id, e.id, closed.at, jsonb_build_object('episode_type', e.episode_type,
    'content', e.content, 'importance', e.importance, 'source_message_ids', e.source_message_ids,
    'superseded_by', NULL, 'retracted_at', NULL, 'held_at', NULL, 'indexed_at', NULL)
FROM episodes e
LEFT JOIN episodes instead ON instead.id = e.superseded_by
LEFT JOIN compression_runs run ON run.id = e.superseded_by
CROSS JOIN LATERAL (SELECT least(e.retracted_at, instead.learned_at, run.finished_at) AS at) AS closed
WHERE closed.at > e.learned_at;
ALTER TABLE compression_runs FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_versions FORCE ROW LEVEL SECURITY;
ALTER TABLE episodes FORCE ROW LEVEL SECURITY;
"""

# A version of an episode is in no index: the index holds what the row says now. The content of a message never
# changes but to be removed for good, so that no version has to hold it.
FUNCTIONS = """
CREATE FUNCTION keep_episode_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO memory_versions (tenant_id, user_id, episode_id, was)
    VALUES (OLD.tenant_id, OLD.user_id, OLD.id, jsonb_build_object('episode_type', OLD.episode_type,
        'content', OLD.content, 'importance', OLD.importance, 'source_message_ids', OLD.source_message_ids,
        'superseded_by', OLD.superseded_by, 'retracted_at', OLD.retracted_at, 'held_at', OLD.held_at,
        'indexed_at', NULL));
    RETURN NULL;
END $$;

CREATE FUNCTION keep_message_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO memory_versions (tenant_id, user_id, message_id, was)
    SELECT OLD.tenant_id, c.user_id, OLD.id, jsonb_build_object('memory_text', OLD.memory_text,
        'retracted_at', OLD.retracted_at, 'branch_id', OLD.branch_id)
    FROM conversations c WHERE c.id = OLD.conversation_id;
    RETURN NULL;
END $$;

CREATE FUNCTION keep_day_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Not where the day goes together with its user or its space.
    INSERT INTO memory_versions (tenant_id, user_id, space_id, day_id, was)
    SELECT OLD.tenant_id, OLD.user_id, OLD.space_id, OLD.id, to_jsonb(OLD)
    FROM users u
    WHERE u.id = OLD.user_id AND (OLD.space_id IS NULL OR EXISTS (SELECT FROM spaces s WHERE s.id = OLD.space_id));
    RETURN NULL;
END $$;
"""

TRIGGERS = """
CREATE TRIGGER keep_version
    AFTER UPDATE OF episode_type, content, importance, source_message_ids, superseded_by, retracted_at, held_at
    ON episodes FOR EACH ROW
    WHEN ((OLD.episode_type, OLD.content, OLD.importance, OLD.source_message_ids, OLD.superseded_by,
           OLD.retracted_at, OLD.held_at)
        IS DISTINCT FROM (NEW.episode_type, NEW.content, NEW.importance, NEW.source_message_ids,
           NEW.superseded_by, NEW.retracted_at, NEW.held_at))
    EXECUTE FUNCTION keep_episode_version();
CREATE TRIGGER keep_version AFTER UPDATE OF memory_text, retracted_at, branch_id ON messages FOR EACH ROW
    WHEN ((OLD.memory_text, OLD.retracted_at, OLD.branch_id)
        IS DISTINCT FROM (NEW.memory_text, NEW.retracted_at, NEW.branch_id))
    EXECUTE FUNCTION keep_message_version();
CREATE TRIGGER keep_version AFTER UPDATE OR DELETE ON daily_summaries
    FOR EACH ROW EXECUTE FUNCTION keep_day_version();
"""


def upgrade() -> None:
    """The triggers last: what is filled in here makes no versions."""
    for statements in (LEARNED, VERSIONS, BACKFILL, FUNCTIONS, TRIGGERS):
        op.execute(statements)

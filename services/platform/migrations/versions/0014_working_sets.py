"""What tells a process that the memory of a user, of which it keeps a working set, has changed."""

from alembic import op

revision = "0014"
down_revision = "0013"

# `generation` grows with every change of what can be recalled of a user; `removed_at` is its value after the last
# change that leaves no row behind by which it could be found. Microseconds, so that two histories of one user, as
# after a restore, have no generation in common.
GENERATIONS = """
CREATE TABLE memory_generations (
    user_id    uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    generation bigint NOT NULL DEFAULT 0,
    removed_at bigint NOT NULL DEFAULT 0,
    changed_in xid8 NOT NULL DEFAULT '0'
) WITH (fillfactor = 50);
-- The owner is under row-level security as well.
ALTER TABLE users NO FORCE ROW LEVEL SECURITY;
INSERT INTO memory_generations (user_id, tenant_id) SELECT id, tenant_id FROM users;
ALTER TABLE users FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_generations ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_generations FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON memory_generations
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
"""

# The transaction that changed the row last: a reader that knows a snapshot finds what the snapshot did not see.
EPISODES = """
ALTER TABLE episodes ADD COLUMN changed_in xid8 NOT NULL DEFAULT '0';
CREATE INDEX episodes_changed ON episodes (user_id, changed_in);
"""

FUNCTIONS = """
CREATE FUNCTION begin_memory_generations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO memory_generations (user_id, tenant_id) VALUES (NEW.id, NEW.tenant_id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE FUNCTION mark_changed_episode() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_in := pg_current_xact_id();
    RETURN NEW;
END $$;

CREATE FUNCTION renew_memory_generation(of_user uuid, removes boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    at bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
BEGIN
    -- Once in a transaction, and once more where something is removed after that.
    IF EXISTS (
        SELECT FROM memory_generations WHERE user_id = of_user AND changed_in = pg_current_xact_id()
            AND (NOT removes OR removed_at = generation)
    ) THEN
        RETURN;
    END IF;
    UPDATE memory_generations SET
        generation = greatest(generation + 1, at),
        removed_at = CASE WHEN removes THEN greatest(generation + 1, at) ELSE removed_at END,
        changed_in = pg_current_xact_id()
    WHERE user_id = of_user;
END $$;

CREATE FUNCTION note_changed_episode() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM renew_memory_generation(coalesce(NEW.user_id, OLD.user_id), TG_OP = 'DELETE');
    RETURN NULL;
END $$;

CREATE FUNCTION note_changed_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM renew_memory_generation(user_id, true) FROM conversations WHERE id = NEW.conversation_id;
    RETURN NULL;
END $$;
"""

# The generation is renewed as the last thing of a transaction: so its row is locked for a moment only, and nobody
# who has it waits for anything else.
TRIGGERS = """
CREATE TRIGGER begin_memory_generations AFTER INSERT ON users
    FOR EACH ROW EXECUTE FUNCTION begin_memory_generations();
CREATE TRIGGER mark_changed_episode
    BEFORE INSERT OR UPDATE OF user_id, expert_id, conversation_id, episode_type, content, importance, origin,
        source_message_ids, created_at, superseded_by, indexed_at, retracted_at, held_at
    ON episodes FOR EACH ROW EXECUTE FUNCTION mark_changed_episode();
CREATE CONSTRAINT TRIGGER note_changed_episode
    AFTER INSERT OR DELETE OR UPDATE OF user_id, expert_id, conversation_id, episode_type, content, importance,
        origin, source_message_ids, created_at, superseded_by, indexed_at, retracted_at, held_at
    ON episodes DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_changed_episode();
CREATE CONSTRAINT TRIGGER note_changed_message
    AFTER UPDATE OF content, memory_text, retracted_at, speaker
    ON messages DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN ((OLD.content, OLD.memory_text, OLD.retracted_at, OLD.speaker)
        IS DISTINCT FROM (NEW.content, NEW.memory_text, NEW.retracted_at, NEW.speaker))
    EXECUTE FUNCTION note_changed_message();
"""


def upgrade() -> None:
    """Nobody has a working set yet."""
    for statements in (GENERATIONS, EPISODES, FUNCTIONS, TRIGGERS):
        op.execute(statements)

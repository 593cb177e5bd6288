"""Branches of conversations, digests of messages, and keys that name users."""

from alembic import op

revision = "0015"
down_revision = "0014"

# A branch is the tail of a conversation that was put aside: by an edit, by a new answer, or by going to another
# branch. Its messages name it; messages of the conversation as it goes on name none. `after_turn_id` is the turn
# that it follows; NULL = it begins the conversation.
BRANCHES = """
CREATE TABLE conversation_branches (
    id              uuid PRIMARY KEY,
    tenant_id       uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    after_turn_id   uuid,
    reason          text NOT NULL CHECK (reason IN ('edit', 'regenerate', 'switch')),
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX branches_of_conversation ON conversation_branches (conversation_id, after_turn_id);
ALTER TABLE conversation_branches ENABLE ROW LEVEL SECURITY;
ALTER TABLE conversation_branches FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON conversation_branches
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
ALTER TABLE messages
    ADD COLUMN branch_id uuid REFERENCES conversation_branches ON DELETE SET NULL,
    ADD COLUMN digest    bytea;  -- NULL = it has to be taken of the content
CREATE INDEX messages_of_branch ON messages (branch_id) WHERE branch_id IS NOT NULL;
CREATE INDEX messages_by_digest ON messages (digest) WHERE role = 'assistant' AND digest IS NOT NULL;
CREATE INDEX messages_by_external_id ON messages (conversation_id, external_id) WHERE external_id IS NOT NULL;
ALTER TABLE messages ALTER COLUMN digest SET STATISTICS 0;
"""

VIEW = """
CREATE OR REPLACE VIEW remembered_messages WITH (security_invoker = true) AS
SELECT id, tenant_id, conversation_id, turn_id, role, coalesce(memory_text, content) AS content, parts, completed,
       token_count, created_at, external_id, speaker, topic_id, uncovered, inner_voice
FROM messages WHERE retracted_at IS NULL AND branch_id IS NULL;
CREATE CONSTRAINT TRIGGER note_moved_message
    AFTER UPDATE OF branch_id ON messages DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.branch_id IS DISTINCT FROM NEW.branch_id) EXECUTE FUNCTION note_changed_message();
"""

# What is on a branch leaves memory, and comes back into it.
CHANGED = """
DROP TRIGGER note_changed_message ON messages;
CREATE CONSTRAINT TRIGGER note_changed_message
    AFTER UPDATE OF content, memory_text, retracted_at, speaker, branch_id
    ON messages DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN ((OLD.content, OLD.memory_text, OLD.retracted_at, OLD.speaker, OLD.branch_id)
        IS DISTINCT FROM (NEW.content, NEW.memory_text, NEW.retracted_at, NEW.speaker, NEW.branch_id))
    EXECUTE FUNCTION note_changed_message();
"""

KEYS = """
ALTER TABLE api_keys
    ADD COLUMN acts_for_headers boolean NOT NULL DEFAULT false,
    ADD COLUMN default_user text;
DROP FUNCTION use_api_key(uuid);
CREATE FUNCTION use_api_key(
    key_id uuid, OUT tenant_id uuid, OUT hash bytea, OUT scopes text[], OUT acts_for_headers boolean,
    OUT default_user text
) RETURNS SETOF record
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    UPDATE public.api_keys k SET last_used_at = now()
    WHERE k.id = key_id AND k.revoked_at IS NULL
      AND (k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute');
    SELECT k.tenant_id, k.hash, k.scopes, k.acts_for_headers, k.default_user
    FROM public.api_keys k WHERE k.id = key_id AND k.revoked_at IS NULL;
$$;
REVOKE ALL ON FUNCTION use_api_key(uuid) FROM PUBLIC;
"""


def upgrade() -> None:
    """No message is on a branch, and no key names a user."""
    for statements in (BRANCHES, VIEW, CHANGED, KEYS):
        op.execute(statements)

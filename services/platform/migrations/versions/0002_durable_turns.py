"""Turns that wait, one running turn a conversation, what recovery needs, and API keys."""

from alembic import op

revision = "0002"
down_revision = "0001"

TURNS = """
ALTER TABLE turns DROP CONSTRAINT turns_status_check;
ALTER TABLE turns
    ADD CONSTRAINT turns_status_check
        CHECK (status IN ('waiting', 'running', 'completed', 'partial', 'failed', 'cancelled')),
    ADD COLUMN accepted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ADD COLUMN request jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN stop_requested text CHECK (stop_requested IN ('cancelled', 'partial'));
"""

# Up to now a conversation could have several. The owner is under row-level security as well.
ONE_RUNNING = """
ALTER TABLE turns NO FORCE ROW LEVEL SECURITY;
UPDATE turns SET status = 'failed', finished_at = now(), lease_expires_at = NULL,
    error = '{"code": "interrupted", "message": "The service was interrupted.", "retryable": true}'
WHERE status = 'running' AND EXISTS (
    SELECT FROM turns newer
    WHERE newer.conversation_id = turns.conversation_id AND newer.status = 'running' AND newer.id > turns.id
);
ALTER TABLE turns FORCE ROW LEVEL SECURITY;
CREATE UNIQUE INDEX turns_one_running ON turns (conversation_id) WHERE status = 'running';
CREATE INDEX turns_waiting ON turns (conversation_id, accepted_at, id) WHERE status = 'waiting';
DROP INDEX turns_running;
CREATE INDEX turns_leased ON turns (lease_expires_at) WHERE status IN ('waiting', 'running');
"""

# The service's role sees one tenant a transaction. Two questions come before a tenant is known: which turns
# have lost their process, and whose key is this? Functions of the owner answer them, with ids only.
EXPIRED_TURNS = """
CREATE POLICY owner_finds_expired ON turns FOR SELECT TO CURRENT_USER USING (true);
CREATE FUNCTION expired_turns(OUT tenant_id uuid, OUT turn_id uuid, OUT status text) RETURNS SETOF record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT t.tenant_id, t.id, t.status FROM public.turns t
    WHERE t.status IN ('waiting', 'running') AND t.lease_expires_at < now()
    ORDER BY t.accepted_at, t.id LIMIT 100
$$;
REVOKE ALL ON FUNCTION expired_turns() FROM PUBLIC;
"""

API_KEYS = """
CREATE TABLE api_keys (
    id           uuid PRIMARY KEY,
    tenant_id    uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name         text NOT NULL,
    hash         bytea NOT NULL CHECK (octet_length(hash) = 32),
    scopes       text[] NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    revoked_at   timestamptz
);
CREATE INDEX api_keys_of_tenant ON api_keys (tenant_id, created_at, id);
ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON api_keys
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
CREATE POLICY owner_authenticates ON api_keys TO CURRENT_USER USING (true);
CREATE FUNCTION use_api_key(key_id uuid, OUT tenant_id uuid, OUT hash bytea, OUT scopes text[])
RETURNS SETOF record
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    UPDATE public.api_keys k SET last_used_at = now()
    WHERE k.id = key_id AND k.revoked_at IS NULL
      AND (k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute');
    SELECT k.tenant_id, k.hash, k.scopes FROM public.api_keys k WHERE k.id = key_id AND k.revoked_at IS NULL;
$$;
REVOKE ALL ON FUNCTION use_api_key(uuid) FROM PUBLIC;
"""

# The planner's statistics keep samples of a column's values, also of a user who was erased. No query
# searches by these.
NO_SAMPLES = """
ALTER TABLE messages ALTER COLUMN content SET STATISTICS 0;
ALTER TABLE messages ALTER COLUMN parts SET STATISTICS 0;
ALTER TABLE messages ALTER COLUMN metadata SET STATISTICS 0;
ALTER TABLE conversations ALTER COLUMN title SET STATISTICS 0;
ALTER TABLE conversations ALTER COLUMN session_key SET STATISTICS 0;
ALTER TABLE turns ALTER COLUMN request SET STATISTICS 0;
ALTER TABLE turns ALTER COLUMN idempotency_key SET STATISTICS 0;
ALTER TABLE turns ALTER COLUMN error SET STATISTICS 0;
ALTER TABLE turns ALTER COLUMN context_report SET STATISTICS 0;
ALTER TABLE users ALTER COLUMN external_id SET STATISTICS 0;
ALTER TABLE users ALTER COLUMN display_name SET STATISTICS 0;
"""


def upgrade() -> None:
    """Change the turns first: the rest stands on its own."""
    for statements in (TURNS, ONE_RUNNING, EXPIRED_TURNS, API_KEYS, NO_SAMPLES):
        op.execute(statements)

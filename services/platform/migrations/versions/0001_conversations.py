"""Tenants, users, experts, conversations, messages and turns, with row-level security; the job queue."""

from alembic import op
from procrastinate.schema import SchemaManager

revision = "0001"
down_revision = None

TABLES = """
CREATE TABLE tenants (
    id          uuid PRIMARY KEY,
    name        text NOT NULL UNIQUE,
    created_at  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE users (
    id           uuid PRIMARY KEY,
    tenant_id    uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    external_id  text NOT NULL,
    timezone     text NOT NULL DEFAULT 'Asia/Shanghai',
    locale       text,
    display_name text,
    created_at   timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, external_id)
);

CREATE TABLE experts (
    id                   uuid PRIMARY KEY,
    tenant_id            uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name                 text NOT NULL,
    persona              text NOT NULL DEFAULT '',
    system_prompt        text NOT NULL,
    model                text,
    context_strategy     text NOT NULL DEFAULT 'summary' CHECK (context_strategy IN ('summary', 'topics')),
    context_window       integer NOT NULL DEFAULT 32000 CHECK (context_window > 0),
    context_threshold    numeric(3,2) NOT NULL DEFAULT 0.70 CHECK (context_threshold BETWEEN 0 AND 1),
    min_archive_messages integer NOT NULL DEFAULT 20 CHECK (min_archive_messages > 0),
    reflection           boolean NOT NULL DEFAULT false,
    created_at           timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, name)
);

CREATE TABLE conversations (
    id          uuid PRIMARY KEY,
    tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id     uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    expert_id   uuid NOT NULL REFERENCES experts,
    session_key text NOT NULL,
    title       text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, user_id, session_key)
);
CREATE INDEX conversations_newest ON conversations (user_id, created_at DESC, id DESC);

CREATE TABLE messages (
    id              uuid PRIMARY KEY,
    tenant_id       uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    turn_id         uuid NOT NULL,
    role            text NOT NULL CHECK (role IN ('user', 'assistant')),
    content         text NOT NULL,
    parts           jsonb NOT NULL DEFAULT '[]',
    completed       boolean NOT NULL,
    token_count     integer NOT NULL CHECK (token_count >= 0),
    metadata        jsonb NOT NULL DEFAULT '{}',
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX messages_in_order ON messages (conversation_id, created_at, id);

CREATE TABLE turns (
    id                   uuid PRIMARY KEY,
    tenant_id            uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    conversation_id      uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    user_message_id      uuid NOT NULL,
    assistant_message_id uuid,
    status               text NOT NULL
        CHECK (status IN ('running', 'completed', 'partial', 'failed', 'cancelled')),
    idempotency_key      text,
    route_decision       jsonb,
    usage                jsonb,
    timings              jsonb,
    degraded             jsonb NOT NULL DEFAULT '[]',
    context_report       jsonb,
    error                jsonb,
    started_at           timestamptz NOT NULL DEFAULT now(),
    finished_at          timestamptz,
    lease_expires_at     timestamptz,
    UNIQUE (conversation_id, idempotency_key)
);
CREATE INDEX turns_running ON turns (lease_expires_at) WHERE status = 'running';
"""

# `SELECT` around the setting lets the planner read it once a statement instead of once a row; an empty
# setting (no tenant) is NULL, and nothing equals NULL.
ISOLATION = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON {table}
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
"""

DEFAULTS = """
SELECT set_config('anamnesis.tenant_id', '00000000-0000-7000-8000-000000000001', true);
INSERT INTO tenants (id, name) VALUES ('00000000-0000-7000-8000-000000000001', 'default');
INSERT INTO experts (id, tenant_id, name, system_prompt)
VALUES (
    '00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000001', 'default',
    'You are a helpful assistant who has been talking with this person for a long time. '
    'Answer in the language of the question. What you know of the person is given below; use it where it '
    'helps, and say so when you do not know something.'
);
"""


def upgrade() -> None:
    """Create everything in the order of dependence."""
    op.execute(TABLES)
    for table in ("users", "experts", "conversations", "messages", "turns"):
        op.execute(ISOLATION.format(table=table))
    op.execute(DEFAULTS)
    # Through the driver itself: the text holds percent signs, which SQLAlchemy would take for parameters.
    op.get_bind().connection.cursor().execute(SchemaManager.get_schema())

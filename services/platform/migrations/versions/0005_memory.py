"""Core memory, episodes, and the log of what memory did."""

from alembic import op

revision = "0005"
down_revision = "0004"

# A message that was imported keeps the caller's id, and the key by which it is known when it comes again.
MESSAGES = """
ALTER TABLE messages
    ADD COLUMN external_id text,
    ADD COLUMN speaker     text,
    ADD COLUMN import_key  text;
CREATE UNIQUE INDEX messages_imported ON messages (conversation_id, import_key) WHERE import_key IS NOT NULL;
"""

CORE_MEMORY = """
CREATE TABLE core_memory_blocks (
    id         uuid PRIMARY KEY,
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    expert_id  uuid NOT NULL REFERENCES experts,
    section    text NOT NULL CHECK (length(section) BETWEEN 1 AND 64),
    content    jsonb NOT NULL,
    version    integer NOT NULL,
    rewritten_version integer NOT NULL DEFAULT 0,  -- the last one that was written as a whole
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (user_id, expert_id, section)
);
CREATE TABLE core_memory_history (
    block_id           uuid NOT NULL REFERENCES core_memory_blocks ON DELETE CASCADE,
    version            integer NOT NULL,
    tenant_id          uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    old                jsonb,
    new                jsonb,
    trigger_message_id uuid,
    actor              text NOT NULL,
    at                 timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (block_id, version)
);
"""

# Grows with every change of a user's core memory with an expert, also with a section that goes. Whoever changes
# it locks its row first.
GENERATIONS = """
CREATE TABLE core_memory_generations (
    user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    expert_id  uuid NOT NULL REFERENCES experts ON DELETE CASCADE,
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    generation bigint NOT NULL,
    PRIMARY KEY (user_id, expert_id)
);
"""

# The texts of a turn stay where they are, in `messages`; `content` is of what was written as a memory.
EPISODES = """
CREATE TABLE episodes (
    id                 uuid PRIMARY KEY,
    tenant_id          uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id            uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    expert_id          uuid NOT NULL REFERENCES experts,
    conversation_id    uuid REFERENCES conversations ON DELETE CASCADE,
    episode_type       text NOT NULL
        CHECK (episode_type IN ('turn', 'preference', 'decision', 'context', 'outcome', 'consolidated')),
    content            text,
    importance         real NOT NULL CHECK (importance BETWEEN 0 AND 1),
    origin             text NOT NULL
        CHECK (origin IN ('user_said', 'assistant_said', 'tool', 'document', 'derived')),
    source_message_ids uuid[] NOT NULL DEFAULT '{}',
    created_at         timestamptz NOT NULL DEFAULT now(),
    last_recalled_at   timestamptz,
    recall_count       integer NOT NULL DEFAULT 0,
    superseded_by      uuid,
    indexed_at         timestamptz,
    CHECK ((episode_type = 'turn') = (content IS NULL))
);
CREATE INDEX episodes_in_order ON episodes (user_id, created_at, id);
CREATE INDEX episodes_of_conversation ON episodes (conversation_id);
CREATE INDEX episodes_not_indexed ON episodes (user_id, created_at, id) WHERE indexed_at IS NULL;
CREATE INDEX episodes_to_index ON episodes (tenant_id, id) WHERE indexed_at IS NULL;
CREATE INDEX episodes_of_tenant ON episodes (tenant_id, id);
"""

# The index is kept by a job of no tenant; it may see whose episodes wait, and nothing else.
TO_INDEX = """
CREATE POLICY owner_finds_unindexed ON episodes FOR SELECT TO CURRENT_USER USING (true);
CREATE FUNCTION tenants_to_index() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT t.id FROM public.tenants t
    WHERE EXISTS (SELECT FROM public.episodes e WHERE e.tenant_id = t.id AND e.indexed_at IS NULL)
$$;
REVOKE ALL ON FUNCTION tenants_to_index() FROM PUBLIC;
"""

OPERATIONS = """
CREATE TABLE memory_operations (
    id              uuid PRIMARY KEY,
    tenant_id       uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id         uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    conversation_id uuid REFERENCES conversations ON DELETE CASCADE,
    turn_id         uuid,
    type            text NOT NULL,
    field           text,
    old_value       jsonb,
    new_value       jsonb,
    query           text,
    results         jsonb,
    trigger         jsonb NOT NULL,
    at              timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX memory_operations_in_order ON memory_operations (user_id, at, id);
CREATE INDEX memory_operations_of_conversation ON memory_operations (conversation_id);
"""

# What the next prompts of a conversation begin with, of core memory.
EPOCHS = """
ALTER TABLE context_epochs ADD COLUMN core_memory jsonb NOT NULL DEFAULT '{}';
ALTER TABLE context_epochs ALTER COLUMN core_memory SET STATISTICS 0;
ALTER TABLE context_epochs ALTER COLUMN core_versions SET STATISTICS 0;
"""

ISOLATION = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON {table}
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
"""

# The planner's statistics keep samples of a column's values, also of a user who was erased.
NO_SAMPLES = """
ALTER TABLE messages ALTER COLUMN external_id SET STATISTICS 0;
ALTER TABLE messages ALTER COLUMN speaker SET STATISTICS 0;
ALTER TABLE messages ALTER COLUMN import_key SET STATISTICS 0;
ALTER TABLE core_memory_blocks ALTER COLUMN content SET STATISTICS 0;
ALTER TABLE core_memory_blocks ALTER COLUMN section SET STATISTICS 0;
ALTER TABLE core_memory_history ALTER COLUMN old SET STATISTICS 0;
ALTER TABLE core_memory_history ALTER COLUMN new SET STATISTICS 0;
ALTER TABLE episodes ALTER COLUMN content SET STATISTICS 0;
ALTER TABLE memory_operations ALTER COLUMN field SET STATISTICS 0;
ALTER TABLE memory_operations ALTER COLUMN old_value SET STATISTICS 0;
ALTER TABLE memory_operations ALTER COLUMN new_value SET STATISTICS 0;
ALTER TABLE memory_operations ALTER COLUMN query SET STATISTICS 0;
ALTER TABLE memory_operations ALTER COLUMN results SET STATISTICS 0;
ALTER TABLE memory_operations ALTER COLUMN trigger SET STATISTICS 0;
"""


def upgrade() -> None:
    """Tables before what refers to them."""
    for statements in (MESSAGES, CORE_MEMORY, GENERATIONS, EPISODES, OPERATIONS, EPOCHS):
        op.execute(statements)
    for table in (
        "core_memory_blocks",
        "core_memory_history",
        "core_memory_generations",
        "episodes",
        "memory_operations",
    ):
        op.execute(ISOLATION.format(table=table))
    op.execute(TO_INDEX)
    op.execute(NO_SAMPLES)

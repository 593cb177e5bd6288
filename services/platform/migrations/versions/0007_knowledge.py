"""Knowledge bases: what they say of themselves, their documents, and the pieces that are searched."""

from alembic import op

revision = "0007"
down_revision = "0006"

BASES = """
CREATE TABLE knowledge_bases (
    id            uuid PRIMARY KEY,
    tenant_id     uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    prefix        text NOT NULL CHECK (prefix ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    description   text NOT NULL,
    keywords      jsonb NOT NULL DEFAULT '[]',
    questions     jsonb NOT NULL DEFAULT '[]',
    system_prompt text NOT NULL DEFAULT '',
    handler       text,
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now(),
    documents_changed_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, prefix)
);
"""

# `version` grows with every change of the text. What the index holds of an earlier one is removed behind it.
DOCUMENTS = """
CREATE TABLE kb_documents (
    id          uuid PRIMARY KEY,
    tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    base_id     uuid NOT NULL REFERENCES knowledge_bases ON DELETE CASCADE,
    source      text NOT NULL,
    title       text NOT NULL,
    media_type  text NOT NULL,
    checksum    bytea NOT NULL,
    byte_size   bigint NOT NULL,
    chunk_count integer NOT NULL,
    version     integer NOT NULL DEFAULT 1,
    ingested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (base_id, source)
);
"""

# `terms` are those of the text with its headings, as they are indexed; `words` the same, to be looked through
# where the index cannot answer.
CHUNKS = """
CREATE TABLE kb_chunks (
    id          uuid PRIMARY KEY,
    tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    base_id     uuid NOT NULL REFERENCES knowledge_bases ON DELETE CASCADE,
    document_id uuid NOT NULL REFERENCES kb_documents ON DELETE CASCADE,
    version     integer NOT NULL,
    position    integer NOT NULL,
    heading     text NOT NULL,
    page        integer,
    text        text NOT NULL,
    terms       text NOT NULL,
    words       tsvector NOT NULL GENERATED ALWAYS AS (array_to_tsvector(string_to_array(terms, ' '))) STORED,
    indexed_at  timestamptz
);
CREATE INDEX kb_chunks_of_document ON kb_chunks (document_id, position);
CREATE INDEX kb_chunks_of_base ON kb_chunks (base_id, id);
CREATE INDEX kb_chunks_to_index ON kb_chunks (tenant_id, base_id, id) WHERE indexed_at IS NULL;
CREATE INDEX kb_chunks_in_order ON kb_chunks (tenant_id, id);
"""

ISOLATION = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON {table}
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
"""

# The index is kept by a job of no tenant; it may see whose passages wait, and nothing else.
TO_INDEX = """
CREATE POLICY owner_finds_unindexed ON kb_chunks FOR SELECT TO CURRENT_USER USING (true);
CREATE FUNCTION tenants_with_passages_to_index() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT t.id FROM public.tenants t
    WHERE EXISTS (SELECT FROM public.kb_chunks c WHERE c.tenant_id = t.id AND c.indexed_at IS NULL)
$$;
REVOKE ALL ON FUNCTION tenants_with_passages_to_index() FROM PUBLIC;
"""

# The planner's statistics keep samples of a column's values; nothing is asked by these.
NO_SAMPLES = """
ALTER TABLE knowledge_bases ALTER COLUMN system_prompt SET STATISTICS 0;
ALTER TABLE kb_chunks ALTER COLUMN heading SET STATISTICS 0;
ALTER TABLE kb_chunks ALTER COLUMN text SET STATISTICS 0;
ALTER TABLE kb_chunks ALTER COLUMN terms SET STATISTICS 0;
ALTER TABLE kb_chunks ALTER COLUMN words SET STATISTICS 0;
"""


def upgrade() -> None:
    """All three tables are new."""
    for statements in (BASES, DOCUMENTS, CHUNKS):
        op.execute(statements)
    for table in ("knowledge_bases", "kb_documents", "kb_chunks"):
        op.execute(ISOLATION.format(table=table))
    op.execute(TO_INDEX)
    op.execute(NO_SAMPLES)

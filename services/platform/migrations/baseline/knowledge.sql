-- Knowledge bases.

CREATE TABLE knowledge_bases (
    id                    uuid NOT NULL,
    tenant_id             uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    prefix                text NOT NULL,
    description           text NOT NULL,
    keywords              jsonb NOT NULL DEFAULT '[]',
    system_prompt         text NOT NULL DEFAULT '',
    handler               text,
    created_at            timestamptz NOT NULL DEFAULT now(),
    updated_at            timestamptz NOT NULL DEFAULT now(),
    user_id               uuid,
    session_key           text,
    PRIMARY KEY (id, tenant_id),
    UNIQUE (tenant_id, prefix),
    UNIQUE (tenant_id, user_id, session_key),
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE,
    CHECK ((user_id IS NULL) = (session_key IS NULL)),
    CHECK (prefix ~ '^[a-z0-9][a-z0-9_-]{0,62}$')
);
COMMENT ON TABLE knowledge_bases IS 'Knowledge bases of a tenant, and documents of single conversations.';
COMMENT ON COLUMN knowledge_bases.user_id IS 'whose documents of one conversation they are; NULL = the tenant''s';
ALTER TABLE knowledge_bases
    ALTER system_prompt SET STATISTICS 0,
    ALTER session_key SET STATISTICS 0;

CREATE TABLE kb_documents (
    id           uuid NOT NULL,
    tenant_id    uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    base_id      uuid NOT NULL,
    source       text NOT NULL,
    title        text NOT NULL,
    media_type   text NOT NULL,
    checksum     bytea NOT NULL,
    byte_size    bigint NOT NULL,
    chunk_count  integer NOT NULL,
    version      integer NOT NULL DEFAULT 1,
    ingested_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    left_out     text[],
    PRIMARY KEY (id, tenant_id),
    UNIQUE (base_id, source, tenant_id),
    FOREIGN KEY (base_id, tenant_id) REFERENCES knowledge_bases (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE kb_documents IS 'Documents of a knowledge base.';
COMMENT ON COLUMN kb_documents.version IS 'grows with every change of the text';
COMMENT ON COLUMN kb_documents.left_out IS
    'what of the document is not in its text, such as "2 comments"; null: read before this was noted';

CREATE TABLE kb_chunks (
    id           uuid NOT NULL,
    tenant_id    uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    base_id      uuid NOT NULL,
    document_id  uuid NOT NULL,
    version      integer NOT NULL,
    position   integer NOT NULL,
    heading      text NOT NULL,
    page         integer,
    text         text NOT NULL,
    terms        text NOT NULL,
    words        tsvector GENERATED ALWAYS AS (array_to_tsvector(string_to_array(terms, ' '))) STORED NOT NULL,
    indexed_at   timestamptz,
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (base_id, tenant_id) REFERENCES knowledge_bases (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (document_id, tenant_id) REFERENCES kb_documents (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE kb_chunks IS 'Passages of documents, as they are searched and shown.';
COMMENT ON COLUMN kb_chunks.terms IS 'the terms of the text with its headings, as they are indexed';
COMMENT ON COLUMN kb_chunks.words IS 'the same, to be searched where the index cannot answer';
ALTER TABLE kb_chunks
    ALTER heading SET STATISTICS 0,
    ALTER text SET STATISTICS 0,
    ALTER terms SET STATISTICS 0,
    ALTER words SET STATISTICS 0;
CREATE INDEX kb_chunks_in_order ON kb_chunks (tenant_id, id);
CREATE INDEX kb_chunks_of_base ON kb_chunks (base_id, id);
CREATE INDEX kb_chunks_of_document ON kb_chunks (document_id, position);
CREATE INDEX kb_chunks_to_index ON kb_chunks (tenant_id, base_id, id) WHERE indexed_at IS NULL;

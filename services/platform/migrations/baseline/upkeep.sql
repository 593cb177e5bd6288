-- What works on memory at night or on request, and what it keeps to be undone or shown.

CREATE TABLE upkeep_runs (
    id         uuid NOT NULL,
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id    uuid NOT NULL,
    reason     text NOT NULL,
    days       integer,
    importance double precision,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    undone_at  timestamptz,
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE,
    CHECK (reason IN ('night', 'request', 'import'))
);
COMMENT ON TABLE upkeep_runs IS 'Runs that merged what says the same, and let unused memories fade.';
CREATE INDEX upkeep_runs_of_user ON upkeep_runs (user_id, created_at, id);

CREATE TABLE upkeep_changes (
    run_id      uuid NOT NULL,
    episode_id  uuid NOT NULL,
    tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id     uuid NOT NULL,
    kept_id     uuid,
    PRIMARY KEY (run_id, episode_id, tenant_id),
    FOREIGN KEY (run_id, tenant_id) REFERENCES upkeep_runs (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE upkeep_changes IS 'What a run did to which memory.';
COMMENT ON COLUMN upkeep_changes.kept_id IS 'of a merged one: the memory or section of core memory that stayed; NULL = it was archived';
CREATE INDEX upkeep_changes_of_episode ON upkeep_changes (episode_id);
CREATE INDEX upkeep_changes_by_kept ON upkeep_changes (kept_id) WHERE kept_id IS NOT NULL;
CREATE INDEX upkeep_changes_of_user ON upkeep_changes (user_id);

CREATE TABLE upkeep_nights (
    user_id    uuid NOT NULL,
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    at         timestamptz NOT NULL,
    again_at   timestamptz,
    PRIMARY KEY (user_id, tenant_id),
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE upkeep_nights IS 'Until when memory was looked through for a user.';
COMMENT ON COLUMN upkeep_nights.again_at IS 'when a plan of theirs is past; NULL = none has a day';

CREATE TABLE retention_runs (
    id         uuid NOT NULL,
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    begun_at   timestamptz NOT NULL,
    report     jsonb NOT NULL,
    PRIMARY KEY (id, tenant_id)
);
COMMENT ON TABLE retention_runs IS 'What retention removed, in counts.';
CREATE INDEX retention_runs_of_tenant ON retention_runs (tenant_id, begun_at DESC, id DESC);

CREATE TABLE forget_receipts (
    id          uuid NOT NULL,
    tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id     uuid NOT NULL,
    document    text NOT NULL,
    signature   text NOT NULL,
    public_key  text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE forget_receipts IS 'Signed statements of what was forgotten for good.';
COMMENT ON COLUMN forget_receipts.document IS 'the very text that was signed';
ALTER TABLE forget_receipts
    ALTER document SET STATISTICS 0;
CREATE INDEX forget_receipts_of_user ON forget_receipts (user_id, created_at, id);

CREATE TABLE forgotten_words (
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id    uuid NOT NULL,
    digest     bytea NOT NULL,
    deleted    boolean NOT NULL,
    PRIMARY KEY (user_id, digest, tenant_id),
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE forgotten_words IS 'Digests of what was forgotten for good, so that no import brings it back.';
COMMENT ON COLUMN forgotten_words.deleted IS 'false: the words stay in their conversation, and out of memory';

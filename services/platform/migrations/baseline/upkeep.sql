-- What works on memory at night or on request, and what it keeps to be undone or shown.

CREATE TABLE compression_runs (
    id            uuid NOT NULL,
    tenant_id     uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id       uuid NOT NULL,
    expert_id     uuid NOT NULL,
    status        text NOT NULL,
    reason        text NOT NULL,
    dry_run       boolean NOT NULL,
    token         uuid,
    lease_until   timestamptz NOT NULL,
    report        jsonb NOT NULL DEFAULT '{}',
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at   timestamptz,
    undone_at     timestamptz,
    forgotten_at  timestamptz,
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (expert_id, tenant_id) REFERENCES experts (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE,
    CHECK (reason IN ('night', 'request')),
    CHECK (status IN ('waiting', 'running', 'done', 'failed', 'undone'))
);
COMMENT ON TABLE compression_runs IS 'Runs that merge what says the same.';
ALTER TABLE compression_runs
    ALTER report SET STATISTICS 0;
CREATE INDEX compression_runs_of_user ON compression_runs (user_id, created_at, id);
CREATE INDEX compression_runs_to_forget ON compression_runs (tenant_id, finished_at) WHERE forgotten_at IS NULL;
CREATE UNIQUE INDEX compression_runs_under_way ON compression_runs (user_id, expert_id, tenant_id)
    WHERE status IN ('waiting', 'running');

CREATE TABLE compression_drafts (
    id         uuid NOT NULL,
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id    uuid NOT NULL,
    run_id     uuid NOT NULL,
    content    text,
    made_by    jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (run_id, tenant_id) REFERENCES compression_runs (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE compression_drafts IS
    'Texts of a run. A draft has the id of the episode that it becomes, and its content moves there.';
ALTER TABLE compression_drafts
    ALTER content SET STATISTICS 0;
CREATE INDEX compression_drafts_of_run ON compression_drafts (run_id);
CREATE INDEX compression_drafts_staged ON compression_drafts (tenant_id) WHERE content IS NOT NULL;

CREATE TABLE compression_sources (
    run_id        uuid NOT NULL,
    episode_id    uuid NOT NULL,
    tenant_id     uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id       uuid NOT NULL,
    draft_id      uuid,
    outcome       text NOT NULL,
    source_count  integer NOT NULL,
    content_hash  text,
    PRIMARY KEY (run_id, episode_id, tenant_id),
    FOREIGN KEY (draft_id, tenant_id) REFERENCES compression_drafts (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (run_id, tenant_id) REFERENCES compression_runs (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE,
    CHECK (outcome IN ('represented', 'duplicate', 'contradicted', 'trivial', 'retired'))
);
COMMENT ON TABLE compression_sources IS 'Which episodes a run merged, and why.';
COMMENT ON COLUMN compression_sources.draft_id IS 'NULL = it was retired without a text in its place';
CREATE INDEX compression_sources_of_draft ON compression_sources (draft_id);
CREATE INDEX compression_sources_of_episode ON compression_sources (episode_id);

CREATE TABLE fading_runs (
    id            uuid NOT NULL,
    tenant_id     uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id       uuid NOT NULL,
    reason        text NOT NULL,
    action        text NOT NULL,
    days          integer,
    importance    double precision,
    episode_ids   uuid[] NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    undone_at     timestamptz,
    forgotten_at  timestamptz,
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE,
    CHECK (action IN ('archive', 'remove')),
    CHECK (reason IN ('night', 'request', 'import'))
);
COMMENT ON TABLE fading_runs IS 'Runs in which unused memories faded.';
CREATE INDEX fading_runs_of_user ON fading_runs (user_id, created_at, id);
CREATE INDEX fading_runs_to_forget ON fading_runs (tenant_id, created_at)
    WHERE action = 'remove' AND undone_at IS NULL AND forgotten_at IS NULL;

CREATE TABLE maintained_users (
    user_id    uuid NOT NULL,
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    at         timestamptz NOT NULL,
    PRIMARY KEY (user_id, tenant_id),
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE maintained_users IS 'When memory was last maintained for a user.';

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
    rebuilds    text[] NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE forget_receipts IS 'Signed statements of what was forgotten for good.';
COMMENT ON COLUMN forget_receipts.document IS 'the very text that was signed';
COMMENT ON COLUMN forget_receipts.rebuilds IS
    'derived texts that are made again: the locks of their jobs, and visits';
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

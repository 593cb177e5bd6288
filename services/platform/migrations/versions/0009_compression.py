"""Runs of compression with what they stage and what undoes them; the inner voice of an answer."""

from alembic import op

revision = "0009"
down_revision = "0008"

RUNS = """
CREATE TABLE compression_runs (
    id           uuid PRIMARY KEY,
    tenant_id    uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id      uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    expert_id    uuid NOT NULL REFERENCES experts ON DELETE CASCADE,
    status       text NOT NULL CHECK (status IN ('waiting', 'running', 'done', 'failed', 'undone')),
    reason       text NOT NULL CHECK (reason IN ('night', 'request')),
    dry_run      boolean NOT NULL,
    token        uuid,  -- of the worker that holds it
    lease_until  timestamptz NOT NULL,
    report       jsonb NOT NULL DEFAULT '{}',
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at  timestamptz,
    undone_at    timestamptz,
    forgotten_at timestamptz  -- it can be undone no more
);
CREATE UNIQUE INDEX compression_runs_under_way ON compression_runs (user_id, expert_id)
    WHERE status IN ('waiting', 'running');
CREATE INDEX compression_runs_of_user ON compression_runs (user_id, created_at, id);
CREATE INDEX compression_runs_to_forget ON compression_runs (tenant_id, finished_at) WHERE forgotten_at IS NULL;
"""

# A draft has the id of the episode that it becomes; its content moves there. What was retired has no draft.
DRAFTS = """
CREATE TABLE compression_drafts (
    id        uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id   uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    run_id    uuid NOT NULL REFERENCES compression_runs ON DELETE CASCADE,
    content   text
);
CREATE INDEX compression_drafts_of_run ON compression_drafts (run_id);
CREATE INDEX compression_drafts_staged ON compression_drafts (tenant_id) WHERE content IS NOT NULL;
CREATE TABLE compression_sources (
    run_id       uuid NOT NULL REFERENCES compression_runs ON DELETE CASCADE,
    episode_id   uuid NOT NULL,
    tenant_id    uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id      uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    draft_id     uuid REFERENCES compression_drafts ON DELETE CASCADE,
    outcome      text NOT NULL
        CHECK (outcome IN ('represented', 'duplicate', 'contradicted', 'trivial', 'retired')),
    source_count integer NOT NULL,  -- as it was read
    content_hash text,
    PRIMARY KEY (run_id, episode_id)
);
CREATE INDEX compression_sources_of_episode ON compression_sources (episode_id);
CREATE INDEX compression_sources_of_draft ON compression_sources (draft_id);
"""

EPISODES = """
CREATE INDEX episodes_superseded ON episodes (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX episodes_unimportant ON episodes (user_id, importance)
    WHERE superseded_by IS NULL AND recall_count = 0;
ALTER TABLE messages ADD COLUMN inner_voice jsonb;
"""

ISOLATION = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON {table}
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
"""

# The planner's statistics keep samples of a column's values, also of a user who was erased.
NO_SAMPLES = """
ALTER TABLE compression_runs ALTER COLUMN report SET STATISTICS 0;
ALTER TABLE compression_drafts ALTER COLUMN content SET STATISTICS 0;
ALTER TABLE messages ALTER COLUMN inner_voice SET STATISTICS 0;
"""


def upgrade() -> None:
    """Tables before what refers to them."""
    for statements in (RUNS, DRAFTS, EPISODES):
        op.execute(statements)
    for table in ("compression_runs", "compression_drafts", "compression_sources"):
        op.execute(ISOLATION.format(table=table))
    op.execute(NO_SAMPLES)

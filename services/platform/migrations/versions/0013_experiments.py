"""Experiments, and which variants each turn was given."""

from alembic import op

revision = "0013"
down_revision = "0012"

EXPERIMENTS = """
CREATE TABLE experiments (
    id          uuid PRIMARY KEY,
    tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name        text NOT NULL,
    description text NOT NULL DEFAULT '',
    status      text NOT NULL DEFAULT 'draft' CHECK (status IN ('draft', 'running', 'stopped')),
    variants    jsonb NOT NULL,
    experts     text[],  -- names; NULL = all
    share       real NOT NULL DEFAULT 1 CHECK (share > 0 AND share <= 1),
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at  timestamptz,
    stopped_at  timestamptz,
    UNIQUE (tenant_id, name)
);
CREATE INDEX experiments_running ON experiments (tenant_id) WHERE status = 'running';
ALTER TABLE experiments ENABLE ROW LEVEL SECURITY;
ALTER TABLE experiments FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON experiments
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
"""

# Variants by the ids of their experiments. Few turns have any.
TURNS = """
ALTER TABLE turns ADD COLUMN experiments jsonb;
CREATE INDEX turns_of_experiments ON turns USING gin (experiments) WHERE experiments IS NOT NULL;
"""


def upgrade() -> None:
    """A new table, and a column that is filled from now on."""
    for statements in (EXPERIMENTS, TURNS):
        op.execute(statements)

"""Retention: for how many days a tenant keeps what, and reports of what was removed."""

from alembic import op

revision = "0029"
down_revision = "0028"

RETENTION = """
CREATE TABLE retention_rules (
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    kind       text NOT NULL CHECK (kind IN ('messages', 'turns', 'jobs', 'operations')),
    days       integer NOT NULL CHECK (days BETWEEN 1 AND 36500),
    set_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, kind)
);
CREATE TABLE retention_runs (
    id         uuid PRIMARY KEY,
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    begun_at   timestamptz NOT NULL,
    report     jsonb NOT NULL
);
CREATE INDEX retention_runs_of_tenant ON retention_runs (tenant_id, begun_at DESC, id DESC);
"""

ISOLATION = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON {table}
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
"""


def upgrade() -> None:
    """No tenant has a rule: everything is kept as before."""
    op.execute(RETENTION)
    for table in ("retention_rules", "retention_runs"):
        op.execute(ISOLATION.format(table=table))

"""Maintenance: a tenant's policy, runs that let memories fade, and pins."""

from alembic import op

revision = "0028"
down_revision = "0027"

# A tenant without a row has the default policy.
POLICIES = """
CREATE TABLE maintenance_policies (
    tenant_id         uuid PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    fading            text NOT NULL CHECK (fading IN ('never', 'archive', 'remove')),
    fading_days       integer NOT NULL CHECK (fading_days BETWEEN 1 AND 36500),
    fading_importance double precision NOT NULL CHECK (fading_importance BETWEEN 0 AND 1),
    proposals         text NOT NULL CHECK (proposals IN ('propose', 'apply')),
    updated_at        timestamptz NOT NULL DEFAULT clock_timestamp()
);
"""

# While a memory is faded, its `superseded_by` is the run's id, so every reader that leaves out what is superseded
# leaves it out as well, also in the version before.
RUNS = """
CREATE TABLE fading_runs (
    id           uuid PRIMARY KEY,
    tenant_id    uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id      uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    reason       text NOT NULL CHECK (reason IN ('night', 'request', 'import')),
    action       text NOT NULL CHECK (action IN ('archive', 'remove')),
    days         integer,  -- of the policy; none where an import brought archived memories in
    importance   double precision,
    episode_ids  uuid[] NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    undone_at    timestamptz,
    forgotten_at timestamptz  -- what it removed is gone for good
);
CREATE INDEX fading_runs_of_user ON fading_runs (user_id, created_at, id);
CREATE INDEX fading_runs_to_forget ON fading_runs (tenant_id, created_at)
    WHERE action = 'remove' AND undone_at IS NULL AND forgotten_at IS NULL;
CREATE TABLE maintained_users (
    user_id   uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    tenant_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    at        timestamptz NOT NULL
);
"""

# A pinned value is known by a digest with the section's id: no word of it is stored twice.
PINS = """
ALTER TABLE episodes ADD COLUMN pinned_at timestamptz;
CREATE TABLE core_memory_pins (
    block_id  uuid NOT NULL REFERENCES core_memory_blocks ON DELETE CASCADE,
    digest    bytea NOT NULL,
    tenant_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    pinned_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (block_id, digest)
);
"""

PROPOSALS = """
CREATE INDEX memory_operations_proposals ON memory_operations (user_id, at, id) WHERE type = 'memory_proposal';
"""

ISOLATION = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON {table}
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
"""


def upgrade() -> None:
    """Nothing fades until a tenant has a policy that says so."""
    for statements in (POLICIES, RUNS, PINS, PROPOSALS):
        op.execute(statements)
    for table in ("maintenance_policies", "fading_runs", "maintained_users", "core_memory_pins"):
        op.execute(ISOLATION.format(table=table))

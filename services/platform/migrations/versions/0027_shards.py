"""Shards: which database holds a tenant, moves between them, and tenants that a database does not serve."""

from alembic import op

revision = "0027"
down_revision = "0026"

# The directory is read in the first database alone. None of these tables holds words of users.
DIRECTORY = """
CREATE TABLE shards (
    name      text PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9-]{0,39}$' AND name <> 'home'),
    mark      uuid NOT NULL UNIQUE,
    added_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE tenant_shards (
    tenant_id uuid PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    shard     text NOT NULL REFERENCES shards
);
CREATE TABLE tenant_moves (
    tenant_id  uuid PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    source     text NOT NULL,
    target     text NOT NULL,
    step       text NOT NULL CHECK (step IN ('draining', 'closed', 'copied', 'verified', 'switched', 'done')),
    report     jsonb,
    begun_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
"""

# In every database. A mark tells a shard from other databases; the first one has none.
SERVED = """
CREATE TABLE shard_mark (
    is_shard boolean PRIMARY KEY DEFAULT true CHECK (is_shard),
    mark     uuid NOT NULL
);
CREATE TABLE closed_tenants (
    tenant_id uuid PRIMARY KEY,
    reason    text NOT NULL CHECK (reason IN ('leaving', 'gone', 'arriving')),
    since     timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE parked_jobs (
    tenant_id uuid NOT NULL,
    place     bigint NOT NULL,
    job       jsonb NOT NULL,
    PRIMARY KEY (tenant_id, place)
);
"""

# In place of set_config in transactions of a service with shards. A move takes the lock alone to close a tenant:
# no transaction of the tenant is open when it is closed, and none begins afterwards.
ENTER = """
CREATE FUNCTION enter_tenant(tenant text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('tenant ' || tenant, 0));
    IF EXISTS (SELECT FROM closed_tenants WHERE tenant_id = tenant::uuid) THEN
        RAISE EXCEPTION 'the tenant % is not served by this database', tenant USING ERRCODE = 'AN001';
    END IF;
    RETURN set_config('anamnesis.tenant_id', tenant, true);
END $$;
"""


def upgrade() -> None:
    """Every tenant is in the first database so far; an older program sees none of this."""
    op.execute(DIRECTORY)
    op.execute(SERVED)
    op.execute(ENTER)

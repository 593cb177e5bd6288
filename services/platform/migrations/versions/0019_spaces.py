"""Spaces: what is said in a project or a folder of a user is remembered there and nowhere else."""

from alembic import op

revision = "0019"
down_revision = "0018"

SPACES = """
CREATE TABLE spaces (
    id         uuid PRIMARY KEY,
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (user_id, name)
);
ALTER TABLE spaces ENABLE ROW LEVEL SECURITY;
ALTER TABLE spaces FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON spaces
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
ALTER TABLE spaces ALTER COLUMN name SET STATISTICS 0;
"""

# NULL = outside any space: shared by all of the user's spaces.
COLUMN = """
ALTER TABLE {table} ADD COLUMN space_id uuid REFERENCES spaces ON DELETE CASCADE;
CREATE INDEX {table}_of_space ON {table} (space_id) WHERE space_id IS NOT NULL;
"""

# A space has its own sections beside the shared ones, and its own summaries of days.
KEYS = """
ALTER TABLE core_memory_blocks DROP CONSTRAINT core_memory_blocks_user_id_expert_id_section_key;
ALTER TABLE core_memory_blocks ADD UNIQUE NULLS NOT DISTINCT (user_id, expert_id, section, space_id);
ALTER TABLE daily_summaries DROP CONSTRAINT daily_summaries_pkey;
ALTER TABLE daily_summaries ADD UNIQUE NULLS NOT DISTINCT (user_id, expert_id, date, space_id);
"""


def upgrade() -> None:
    """What is stored already is shared."""
    op.execute(SPACES)
    for table in (
        "conversations",
        "episodes",
        "core_memory_blocks",
        "memory_operations",
        "visits",
        "daily_summaries",
    ):
        op.execute(COLUMN.format(table=table))
    op.execute(KEYS)

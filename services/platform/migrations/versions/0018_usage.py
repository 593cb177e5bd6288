"""What models were asked for, by day."""

from alembic import op

revision = "0018"
down_revision = "0017"

# `user_id` and `expert_id` are NULL for what nobody in particular caused. An expert's rows outlive the expert.
USAGE = """
CREATE TABLE usage (
    tenant_id     uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    day           date NOT NULL,
    user_id       uuid REFERENCES users ON DELETE CASCADE,
    expert_id     uuid,
    purpose       text NOT NULL,
    model         text NOT NULL,
    calls         bigint NOT NULL,
    input_tokens  bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    UNIQUE NULLS NOT DISTINCT (tenant_id, day, user_id, expert_id, purpose, model)
);
CREATE INDEX usage_of_users ON usage (user_id);
ALTER TABLE usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON usage
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
"""


def upgrade() -> None:
    """A new table, which is filled from now on."""
    op.execute(USAGE)

"""Receipts of forgetting."""

from alembic import op

revision = "0022"
down_revision = "0021"

# The document is the very text that was signed. `rebuilds` names the derived texts that are made again: the locks
# of their jobs, and visits.
RECEIPTS = """
CREATE TABLE forget_receipts (
    id         uuid PRIMARY KEY,
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    document   text NOT NULL,
    signature  text NOT NULL,
    public_key text NOT NULL,
    rebuilds   text[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX forget_receipts_of_user ON forget_receipts (user_id, created_at, id);
ALTER TABLE forget_receipts ENABLE ROW LEVEL SECURITY;
ALTER TABLE forget_receipts FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON forget_receipts
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
ALTER TABLE forget_receipts ALTER COLUMN document SET STATISTICS 0;
"""


def upgrade() -> None:
    """Nothing was forgotten with a receipt before."""
    op.execute(RECEIPTS)

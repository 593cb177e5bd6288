"""Sealing: how far the encryption of an existing installation has come."""

from alembic import op

revision = "0031"
down_revision = "0030"
serves_from = "0030"  # both columns are only added

# NULL = some words of users are still in clear. A database that begins empty has none.
SEALED = """
ALTER TABLE encryption ADD COLUMN sealed_at timestamptz;
UPDATE encryption SET sealed_at = since;
ALTER TABLE encryption ALTER COLUMN sealed_at SET DEFAULT clock_timestamp();
ALTER TABLE users ADD COLUMN sealed_at timestamptz;
"""


def upgrade() -> None:
    """What is encrypted so far was from its beginning on."""
    op.execute(SEALED)

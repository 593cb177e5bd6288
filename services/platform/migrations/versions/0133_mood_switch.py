"""Whether it is noted how a user feels."""

from alembic import op

revision = "0133"
down_revision = "0131"


def upgrade() -> None:
    """Add the switch."""
    op.execute("""
        ALTER TABLE users ADD COLUMN mood boolean NOT NULL DEFAULT true;
        COMMENT ON COLUMN users.mood IS 'whether it is noted and told how they feel';
    """)

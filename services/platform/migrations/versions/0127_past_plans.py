"""When a user's memory is to be kept up again, though nothing is new in it."""

from alembic import op

revision = "0127"
down_revision = "0126"


def upgrade() -> None:
    """Add the moment."""
    op.execute("""
        ALTER TABLE upkeep_nights ADD COLUMN again_at timestamptz;
        COMMENT ON COLUMN upkeep_nights.again_at IS 'when a plan of theirs is past; NULL = none has a day';
    """)

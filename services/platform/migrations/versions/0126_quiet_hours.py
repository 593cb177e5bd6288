"""When a user does not want to be asked anything that they have not asked for."""

from alembic import op

revision = "0126"
down_revision = "0125"


def upgrade() -> None:
    """Add the hours."""
    op.execute("""
        ALTER TABLE users ADD COLUMN quiet_hours text;
        COMMENT ON COLUMN users.quiet_hours IS
            'when nothing is said unasked: 22:00-07:00, always, or never; NULL = as the setting says';
    """)

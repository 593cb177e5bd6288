"""Mark of turns that have shown something, for processes that find nothing of it in Redis."""

from alembic import op

revision = "0131"
down_revision = "0130"


def upgrade() -> None:
    """Add whether a turn has shown something, which its process says when it renews its lease."""
    op.execute("""
        ALTER TABLE turns ADD COLUMN shown boolean NOT NULL DEFAULT false;
        COMMENT ON COLUMN turns.shown IS
            'whether it has shown text or called a tool, as its process said when it renewed the lease';
    """)

"""Images are stored without compression: they do not shrink, and their size is then known at once."""

from alembic import op

revision = "0032"
down_revision = "0031"
serves_from = "0030"  # only how new values are stored changes


def upgrade() -> None:
    """Let new messages store their parts so; what is stored stays readable as it is."""
    op.execute("ALTER TABLE messages ALTER COLUMN parts SET STORAGE EXTERNAL")

"""Note how many passages an episode ever had in the index, so that none is left there when a text gets shorter."""

from alembic import op

revision = "0104"
down_revision = "0103"

_UPGRADE = """
ALTER TABLE episodes ADD COLUMN indexed_passages smallint NOT NULL DEFAULT 1;
COMMENT ON COLUMN episodes.indexed_passages IS
    'the most passages that one of its messages, or it itself, ever had in the index';
"""


def upgrade() -> None:
    """Add the column; what is indexed by now has one passage each."""
    op.get_bind().connection.cursor().execute(_UPGRADE)

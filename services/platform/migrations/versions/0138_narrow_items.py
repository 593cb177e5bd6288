"""Filters of the store read documents that are not compressed, in rows without the vectors."""

from alembic import op

revision = "0138"
down_revision = "0134"


def upgrade() -> None:
    """Keep documents in their rows as they are, and vectors outside. Before, PostgreSQL compressed most documents,
    because the vector made the row too wide. Rows that are there stay so until they are written again."""
    op.execute("""
        ALTER TABLE store_items ALTER document SET STORAGE MAIN, ALTER vector SET STORAGE EXTERNAL,
            SET (toast_tuple_target = 512)
    """)

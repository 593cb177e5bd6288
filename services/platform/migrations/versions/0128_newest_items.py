"""The items of a user in the order of their writes, so that a page is read without sorting all of them."""

from alembic import op

revision = "0128"
down_revision = "0127"


def upgrade() -> None:
    """Add the index."""
    op.execute("CREATE INDEX store_items_newest ON store_items (tenant_id, user_id, updated_at, id)")

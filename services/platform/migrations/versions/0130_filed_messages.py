"""Index by which a recall finds the changes of core memory that were made from a message."""

from alembic import op

revision = "0130"
down_revision = "0128"


def upgrade() -> None:
    """Add the index."""
    op.execute("CREATE INDEX core_memory_history_message ON core_memory_history (trigger_message_id, tenant_id)")

"""Until when what a turn said held: recall says so of what was replaced since."""

from alembic import op

revision = "0102"
down_revision = "0101"


def upgrade() -> None:
    op.execute("""
        ALTER TABLE episodes ADD COLUMN valid_until timestamptz;
        COMMENT ON COLUMN episodes.valid_until IS 'of a turn: when all that it says was replaced';
        CREATE OR REPLACE VIEW remembered_episodes WITH (security_invoker = true) AS
        SELECT id, tenant_id, user_id, expert_id, space_id, conversation_id, episode_type, content, importance,
               origin, source_message_ids, created_at, learned_at, last_recalled_at, recall_count, indexed_at,
               pinned_at, changed_in, made_by, valid_until
        FROM episodes
        WHERE superseded_by IS NULL AND superseded_in IS NULL AND archived_by IS NULL AND retracted_at IS NULL
          AND held_at IS NULL;
    """)

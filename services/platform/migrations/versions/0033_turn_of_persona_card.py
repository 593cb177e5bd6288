"""A persona card names the turn that made it: the one that its epoch began in."""

from alembic import op

revision = "0033"
down_revision = "0032"
serves_from = "0030"  # only what one view says of persona cards changes

ITEMS = """
CREATE OR REPLACE VIEW derived_items WITH (security_invoker = true) AS
SELECT tenant_id, user_id, 'episode' AS kind, id, content AS text, created_at AS at, made_by,
       cardinality(source_message_ids) = 0
           AND (coalesce(made_by->>'actor', '') IN ('user', 'import') OR made_by ? 'kept_from_removed') AS is_root,
       CASE WHEN retracted_at IS NOT NULL THEN 'retracted' WHEN superseded_by IS NOT NULL THEN 'superseded'
            ELSE 'current' END AS state
FROM episodes
UNION ALL
SELECT b.tenant_id, b.user_id, 'core_memory', b.id, b.section, b.updated_at,
       h.made_by || jsonb_build_object('actor', h.actor),
       NOT EXISTS (SELECT FROM core_memory_history o WHERE o.block_id = b.id AND o.trigger_message_id IS NULL
                   AND o.actor NOT IN ('user', 'import') AND NOT o.made_by ? 'kept_from_removed'), 'current'
FROM core_memory_blocks b LEFT JOIN core_memory_history h ON h.block_id = b.id AND h.version = b.version
UNION ALL
SELECT s.tenant_id, c.user_id, 'summary', s.conversation_id, s.summary, s.updated_at, s.made_by, false, 'current'
FROM conversation_summaries s JOIN conversations c ON c.id = s.conversation_id
UNION ALL
SELECT tenant_id, user_id, 'topic', id, title || ': ' || summary, created_at, made_by, false, 'current' FROM topics
UNION ALL
SELECT tenant_id, user_id, 'visit', id, summary, coalesce(summary_generated_at, last_active_at), made_by,
       message_count = 0, 'current'
FROM visits
UNION ALL
SELECT tenant_id, user_id, 'day', id, summary, updated_at, made_by, false, 'current' FROM daily_summaries
UNION ALL
SELECT tenant_id, user_id, 'tone', turn_id, dominant, at, jsonb_build_object('turn_id', turn_id), false, 'current'
FROM tone_states
UNION ALL
SELECT m.tenant_id, c.user_id, 'private_note', m.id, m.inner_voice::text, m.created_at,
       m.voice_made_by || jsonb_build_object('turn_id', m.turn_id), false, 'current'
FROM messages m JOIN conversations c ON c.id = m.conversation_id WHERE m.inner_voice IS NOT NULL
UNION ALL
SELECT e.tenant_id, c.user_id, 'persona_card', e.conversation_id, e.persona_card, e.begun_at,
       jsonb_strip_nulls(jsonb_build_object('turn_id', (
           SELECT t.id FROM turns t WHERE t.conversation_id = e.conversation_id AND t.started_at <= e.begun_at
           ORDER BY t.started_at DESC LIMIT 1
       ))), false, 'current'
FROM context_epochs e JOIN conversations c ON c.id = e.conversation_id WHERE e.persona_card <> ''
"""


def upgrade() -> None:
    """The same columns, so that whoever reads the view goes on."""
    op.execute(ITEMS)

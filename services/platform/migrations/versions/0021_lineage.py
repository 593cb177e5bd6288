"""Lineage: which job, prompt and model made what is derived, and from which messages and derived items."""

from alembic import op

revision = "0021"
down_revision = "0020"

# {"actor", "turn_id", "job", "job_id", "prompt", "model"}, each only where it applies. No text of a user.
COLUMNS = """
ALTER TABLE episodes ADD COLUMN made_by jsonb NOT NULL DEFAULT '{}';
ALTER TABLE core_memory_history ADD COLUMN made_by jsonb NOT NULL DEFAULT '{}';
ALTER TABLE conversation_summaries ADD COLUMN made_by jsonb NOT NULL DEFAULT '{}';
ALTER TABLE summary_parts ADD COLUMN made_by jsonb NOT NULL DEFAULT '{}';
ALTER TABLE topics ADD COLUMN made_by jsonb NOT NULL DEFAULT '{}';
ALTER TABLE visits ADD COLUMN made_by jsonb NOT NULL DEFAULT '{}';
ALTER TABLE daily_summaries
    ADD COLUMN id uuid NOT NULL DEFAULT gen_random_uuid(),
    ADD COLUMN made_by jsonb NOT NULL DEFAULT '{}';
CREATE UNIQUE INDEX daily_summaries_by_id ON daily_summaries (id);
ALTER TABLE compression_drafts ADD COLUMN made_by jsonb NOT NULL DEFAULT '{}';
ALTER TABLE messages ADD COLUMN voice_made_by jsonb NOT NULL DEFAULT '{}';
"""

# Of older rows the log of operations says who wrote them; a written episode that neither the log nor a message
# accounts for was imported. The owner is under row-level security as well.
BACKFILL = """
ALTER TABLE episodes NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_operations NO FORCE ROW LEVEL SECURITY;
ALTER TABLE compression_drafts NO FORCE ROW LEVEL SECURITY;
UPDATE episodes e
SET made_by = jsonb_strip_nulls(jsonb_build_object('actor', o.trigger->>'actor', 'turn_id', o.turn_id))
FROM memory_operations o
WHERE o.type = 'episode_insert' AND o.user_id = e.user_id AND o.new_value->>'id' = e.id::text;
UPDATE episodes e SET made_by = jsonb_build_object('actor', 'compression', 'run_id', d.run_id)
FROM compression_drafts d WHERE d.id = e.id AND e.episode_type = 'consolidated';
UPDATE episodes SET made_by = '{"actor": "import"}'
WHERE content IS NOT NULL AND made_by = '{}' AND cardinality(source_message_ids) = 0
  AND episode_type <> 'consolidated';
ALTER TABLE episodes FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_operations FORCE ROW LEVEL SECURITY;
ALTER TABLE compression_drafts FORCE ROW LEVEL SECURITY;
"""

# One row for each derived thing and each thing that it was made of. All of it follows from what is stored anyway,
# so writing a message or an episode costs nothing more. The rights of whoever reads it apply, not the owner's.
EDGES = """
CREATE VIEW lineage WITH (security_invoker = true) AS
SELECT e.tenant_id, e.user_id, 'episode' AS kind, e.id, 'message' AS parent_kind, source.id AS parent_id
FROM episodes e CROSS JOIN LATERAL unnest(e.source_message_ids) AS source (id)
UNION ALL
SELECT e.tenant_id, e.user_id, 'episode', made.id, 'episode', e.id
FROM episodes e JOIN episodes made ON made.id = e.superseded_by AND made.episode_type = 'consolidated'
UNION ALL
SELECT DISTINCT b.tenant_id, b.user_id, 'core_memory', b.id, 'message', h.trigger_message_id
FROM core_memory_blocks b JOIN core_memory_history h ON h.block_id = b.id
WHERE h.trigger_message_id IS NOT NULL
UNION ALL
SELECT s.tenant_id, c.user_id, 'summary', s.conversation_id, 'message', m.id
FROM conversation_summaries s JOIN conversations c ON c.id = s.conversation_id
JOIN remembered_messages m ON m.conversation_id = s.conversation_id AND m.completed AND NOT m.uncovered
    AND (m.created_at, m.id) <= (s.covered_through_created_at, s.covered_through_message_id)
UNION ALL
SELECT t.tenant_id, t.user_id, 'topic', t.id, 'message', m.id FROM topics t JOIN messages m ON m.topic_id = t.id
UNION ALL
SELECT v.tenant_id, v.user_id, 'visit', v.id, 'message', m.id
FROM visits v JOIN remembered_messages m ON m.conversation_id = v.conversation_id AND m.completed
    AND m.created_at >= v.started_at AND m.created_at <= v.last_active_at
UNION ALL
SELECT d.tenant_id, d.user_id, 'day', d.id, 'visit', visit.id
FROM daily_summaries d CROSS JOIN LATERAL unnest(d.visit_ids) AS visit (id)
UNION ALL
SELECT t.tenant_id, t.user_id, 'tone', t.turn_id, 'message', turns.user_message_id
FROM tone_states t CROSS JOIN LATERAL (
    SELECT earlier.turn_id FROM tone_states earlier
    WHERE earlier.conversation_id = t.conversation_id AND earlier.tenant_id = t.tenant_id
      AND (earlier.at, earlier.turn_id) <= (t.at, t.turn_id) AND earlier.at > t.at - interval '1 day'
    ORDER BY earlier.at DESC, earlier.turn_id DESC LIMIT 5
) AS heard JOIN turns ON turns.id = heard.turn_id
UNION ALL
SELECT m.tenant_id, c.user_id, 'private_note', m.id, 'message', said.id
FROM messages m JOIN conversations c ON c.id = m.conversation_id
JOIN messages said ON said.conversation_id = m.conversation_id AND said.turn_id = m.turn_id
WHERE m.inner_voice IS NOT NULL
UNION ALL
SELECT e.tenant_id, c.user_id, 'persona_card', e.conversation_id, 'visit', last.id
FROM context_epochs e JOIN conversations c ON c.id = e.conversation_id CROSS JOIN LATERAL (
    SELECT v.id FROM visits v
    WHERE v.user_id = c.user_id AND v.expert_id = c.expert_id AND v.tenant_id = e.tenant_id
      AND (v.space_id IS NULL OR v.space_id = c.space_id) AND v.started_at <= e.begun_at
    ORDER BY v.key_topics = '[]', v.last_active_at DESC LIMIT 1
) AS last
WHERE e.persona_card <> ''
UNION ALL
SELECT e.tenant_id, c.user_id, 'persona_card', e.conversation_id, 'tone', last.turn_id
FROM context_epochs e JOIN conversations c ON c.id = e.conversation_id CROSS JOIN LATERAL (
    SELECT t.turn_id FROM tone_states t
    WHERE t.user_id = c.user_id AND t.expert_id = c.expert_id AND t.tenant_id = e.tenant_id AND t.at <= e.begun_at
    ORDER BY t.at DESC LIMIT 1
) AS last
WHERE e.persona_card <> ''
"""

# Everything derived that has a text, with who made it. `is_root` = nobody derived it: the user or an import
# brought it in as it is, or its messages were removed on the user's wish, so it may be without parents.
ITEMS = """
CREATE VIEW derived_items WITH (security_invoker = true) AS
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
SELECT e.tenant_id, c.user_id, 'persona_card', e.conversation_id, e.persona_card, e.begun_at, '{}'::jsonb, false,
       'current'
FROM context_epochs e JOIN conversations c ON c.id = e.conversation_id WHERE e.persona_card <> ''
"""


def upgrade() -> None:
    """Columns before the views that read them."""
    for statements in (COLUMNS, BACKFILL, EDGES, ITEMS):
        op.execute(statements)

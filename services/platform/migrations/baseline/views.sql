-- Views. The rights of whoever reads them apply, not the owner's.

-- The one definition of what may be read of messages: by prompts, recall, summaries.
CREATE VIEW remembered_messages WITH (security_invoker = true) AS
SELECT id, tenant_id, conversation_id, turn_id, role, coalesce(memory_text, content) AS content, parts, completed,
       token_count, created_at, external_id, speaker, topic_id, uncovered, private_note
FROM messages WHERE retracted_at IS NULL AND branch_id IS NULL;
COMMENT ON VIEW remembered_messages IS 'What may be read of messages: by prompts, recall and summaries.';

-- The one definition of what may be recalled of episodes.
CREATE VIEW remembered_episodes WITH (security_invoker = true) AS
SELECT id, tenant_id, user_id, expert_id, space_id, conversation_id, episode_type, content, importance, origin,
       source_message_ids, created_at, learned_at, last_recalled_at, recall_count, indexed_at, pinned_at, changed_in,
       made_by, valid_until
FROM episodes
WHERE superseded_by IS NULL AND superseded_in IS NULL AND archived_by IS NULL AND retracted_at IS NULL
  AND held_at IS NULL;
COMMENT ON VIEW remembered_episodes IS
    'What may be recalled: neither superseded, archived, retracted, nor held until that is decided.';

-- One row for each derived thing and each thing that it was made of. All of it follows from what is stored anyway, so
-- writing a message or an episode costs nothing more.
CREATE VIEW lineage WITH (security_invoker = true) AS
SELECT e.tenant_id, e.user_id, 'episode' AS kind, e.id, 'message' AS parent_kind, source.id AS parent_id
FROM episodes e CROSS JOIN LATERAL unnest(e.source_message_ids) AS source (id)
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
SELECT m.tenant_id, c.user_id, 'private_note', m.id, 'message', said.id
FROM messages m JOIN conversations c ON c.id = m.conversation_id
JOIN messages said ON said.conversation_id = m.conversation_id AND said.turn_id = m.turn_id
WHERE m.private_note IS NOT NULL
UNION ALL
SELECT e.tenant_id, c.user_id, 'persona_card', e.conversation_id, 'visit', last.id
FROM context_epochs e JOIN conversations c ON c.id = e.conversation_id CROSS JOIN LATERAL (
    SELECT v.id FROM visits v
    WHERE v.user_id = c.user_id AND v.expert_id = c.expert_id AND v.tenant_id = e.tenant_id
      AND (v.space_id IS NULL OR v.space_id = c.space_id) AND v.started_at <= e.begun_at
    ORDER BY v.key_topics = '[]', v.last_active_at DESC LIMIT 1
) AS last
WHERE e.persona_card <> '';
COMMENT ON VIEW lineage IS 'One row for each derived thing and each thing that it was made of.';

-- Everything derived that has a text, with who made it. `is_root` = nobody derived it: the user or an import brought
-- it in as it is, or its messages were removed on the user's wish, so it may be without parents.
CREATE VIEW derived_items WITH (security_invoker = true) AS
SELECT tenant_id, user_id, 'episode' AS kind, id, content AS text, created_at AS at, made_by,
       cardinality(source_message_ids) = 0
           AND (coalesce(made_by->>'actor', '') IN ('user', 'import') OR made_by ? 'kept_from_removed') AS is_root,
       CASE WHEN retracted_at IS NOT NULL THEN 'retracted'
            WHEN num_nonnulls(superseded_by, superseded_in, archived_by) > 0 THEN 'superseded'
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
SELECT m.tenant_id, c.user_id, 'private_note', m.id, m.private_note::text, m.created_at,
       m.note_made_by || jsonb_build_object('turn_id', m.turn_id), false, 'current'
FROM messages m JOIN conversations c ON c.id = m.conversation_id WHERE m.private_note IS NOT NULL
UNION ALL
SELECT e.tenant_id, c.user_id, 'persona_card', e.conversation_id, e.persona_card, e.begun_at,
       jsonb_strip_nulls(jsonb_build_object('turn_id', (
           SELECT t.id FROM turns t WHERE t.conversation_id = e.conversation_id AND t.started_at <= e.begun_at
           ORDER BY t.started_at DESC LIMIT 1
       ))), false, 'current'
FROM context_epochs e JOIN conversations c ON c.id = e.conversation_id WHERE e.persona_card <> '';
COMMENT ON VIEW derived_items IS 'Everything derived that has a text, with who made it.';

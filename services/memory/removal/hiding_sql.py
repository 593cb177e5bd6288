"""The statements of `Hiding`."""

from typing import LiteralString

# An erasure locks the user first, too.
LOCK_USER: LiteralString = (
    "SELECT id FROM users WHERE id = %(user_id)s AND tenant_id = %(tenant_id)s FOR NO KEY UPDATE"
)

# In one order, so that two never wait for each other; a writer of a summary of one of them waits.
LOCK_CONVERSATIONS: LiteralString = """
SELECT id FROM conversations WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND id IN (
    SELECT conversation_id FROM messages WHERE id = ANY(%(message_ids)s) AND tenant_id = %(tenant_id)s
) ORDER BY id FOR NO KEY UPDATE
"""

TOUCH_CONVERSATIONS: LiteralString = """
UPDATE conversations SET retracted_at = clock_timestamp()
WHERE tenant_id = %(tenant_id)s AND id = ANY(%(conversation_ids)s)
"""

RETRACT_MESSAGES: LiteralString = """
WITH before AS (
    SELECT m.id, m.retracted_at, m.retraction_id, m.memory_text, m.off_record, m.private_note
    FROM messages m JOIN conversations c ON c.id = m.conversation_id
    WHERE m.id = ANY(%(message_ids)s) AND m.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s
      AND m.retracted_at IS NULL
    FOR UPDATE OF m
), changed AS (
    UPDATE messages m SET
        retracted_at = CASE WHEN planned.text IS NULL THEN clock_timestamp() END,
        memory_text = planned.text, retraction_id = %(operation_id)s, off_record = planned.off_record,
        private_note = NULL
    FROM before, unnest(%(message_ids)s::uuid[], %(texts)s::text[], %(off_record)s::boolean[])
        AS planned (id, text, off_record)
    WHERE m.id = before.id AND planned.id = m.id
)
SELECT jsonb_build_object('id', id, 'retraction_id', retraction_id, 'memory_text', memory_text,
    'private_note', private_note) FROM before
"""
# What was thought of an exchange goes, also where its answer stays as it is.
SILENCE: LiteralString = """
WITH before AS (
    SELECT m.id, m.private_note FROM messages m
    WHERE m.tenant_id = %(tenant_id)s AND m.private_note IS NOT NULL AND m.turn_id IN (
        SELECT turn_id FROM messages WHERE id = ANY(%(message_ids)s) AND retraction_id = %(operation_id)s
    ) FOR UPDATE OF m
), changed AS (
    UPDATE messages m SET private_note = NULL FROM before WHERE m.id = before.id
)
SELECT jsonb_build_object('id', id, 'private_note', private_note) FROM before
"""

# Turns that say only what is no longer true keep their text; recall tells until when it was true.
CLOSE_TURNS: LiteralString = """
UPDATE episodes e SET valid_until = clock_timestamp()
WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.content IS NULL AND e.valid_until IS NULL
  AND e.source_message_ids && %(closed_ids)s::uuid[]
RETURNING e.id::text
"""

HOLDS_AGAIN: LiteralString = """
UPDATE episodes SET valid_until = NULL
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND id = ANY(%(closed)s::uuid[])
"""

# Turns of a game or story: they stay in their conversation, its summary and the days.
HOLD_TURNS: LiteralString = """
UPDATE episodes e SET held_at = clock_timestamp(), retraction_id = %(operation_id)s, indexed_at = NULL
WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.content IS NULL AND e.retracted_at IS NULL
  AND e.retraction_id IS NULL AND e.source_message_ids && ARRAY(
      SELECT t.user_message_id FROM turns t WHERE t.id = ANY(%(turn_ids)s) AND t.tenant_id = %(tenant_id)s)
RETURNING e.id
"""

RELEASE_TURNS: LiteralString = """
WITH released AS (
    UPDATE episodes SET held_at = NULL, retraction_id = NULL, indexed_at = NULL
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND retraction_id = %(operation_id)s
      AND held_at IS NOT NULL RETURNING conversation_id
)
UPDATE conversations SET in_story = false WHERE id IN (SELECT conversation_id FROM released) AND in_story
"""

# A turn goes with all of its messages; what was written from a message goes with it, also where the operation is
# a branch.
RETRACT_EPISODES: LiteralString = """
UPDATE episodes e SET retracted_at = clock_timestamp(), retraction_id = %(operation_id)s, indexed_at = NULL
WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.retracted_at IS NULL AND (
    e.id = ANY(%(episode_ids)s)
    OR e.source_message_ids && %(message_ids)s::uuid[] AND CASE
        WHEN e.content IS NULL THEN NOT EXISTS (
            SELECT FROM remembered_messages m WHERE m.id = ANY(e.source_message_ids) AND m.completed
        )
        ELSE EXISTS (
            SELECT FROM messages m WHERE m.id = ANY(e.source_message_ids) AND (m.branch_id = %(operation_id)s
              OR m.retraction_id = %(operation_id)s AND m.retracted_at IS NOT NULL AND m.role = 'user')
        )
    END
)
RETURNING e.id
"""

# What is left of them is indexed again.
CHANGED_EPISODES: LiteralString = """
UPDATE episodes e SET indexed_at = NULL
WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.content IS NULL
  AND e.source_message_ids && %(message_ids)s::uuid[]
"""

# Memories that were kept when the named ones were merged into them.
MERGED_INTO: LiteralString = """
WITH RECURSIVE same AS (
    SELECT c.episode_id FROM upkeep_changes c
    WHERE c.kept_id = ANY(%(episode_ids)s) AND c.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s
      AND EXISTS (SELECT FROM episodes e WHERE e.id = c.episode_id AND e.superseded_by = c.kept_id)
    UNION
    SELECT c.episode_id FROM same JOIN upkeep_changes c ON c.kept_id = same.episode_id
    WHERE c.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s
      AND EXISTS (SELECT FROM episodes e WHERE e.id = c.episode_id AND e.superseded_by = c.kept_id)
)
SELECT episode_id FROM same
"""

# Memories into which others were merged.
MERGED_FROM: LiteralString = """
SELECT id, superseded_by FROM episodes
WHERE id = ANY(%(gone)s) AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s
  AND EXISTS (SELECT FROM upkeep_changes c WHERE c.kept_id = episodes.id)
"""

# Their other sources come back.
UNMERGE: LiteralString = """
WITH before AS (
    SELECT e.id, e.superseded_by FROM episodes e
    WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.superseded_by = ANY(%(made)s)
      AND NOT (e.id = ANY(%(made)s)) AND EXISTS (
          SELECT FROM upkeep_changes c WHERE c.episode_id = e.id AND c.kept_id = e.superseded_by)
    FOR UPDATE OF e
), changed AS (
    UPDATE episodes e SET superseded_by = holds.by, superseded_in = merged.superseded_in,
        archived_by = merged.archived_by, indexed_at = NULL
    FROM before, unnest(%(made)s::uuid[], %(instead)s::uuid[]) AS holds (made, by), episodes merged
    WHERE e.id = before.id AND holds.made = before.superseded_by AND merged.id = before.superseded_by
    RETURNING e.id, before.superseded_by, holds.by
)
SELECT jsonb_build_object('id', id, 'superseded_by', superseded_by, 'instead', by) FROM changed
"""

# Memories that an operation wrote.
RETRACT_WHOLE: LiteralString = """
UPDATE episodes SET retracted_at = clock_timestamp(), retraction_id = %(operation_id)s, indexed_at = NULL
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND id = ANY(%(episode_ids)s) AND retracted_at IS NULL
"""

# Summaries of these messages are deleted, and made again later without them.
WITHDRAW_SUMMARIES: LiteralString = """
DELETE FROM conversation_summaries s
WHERE s.tenant_id = %(tenant_id)s AND s.conversation_id = ANY(%(conversation_ids)s) AND EXISTS (
    SELECT FROM messages m WHERE m.id = ANY(%(message_ids)s) AND m.conversation_id = s.conversation_id
      AND (m.created_at, m.id) <= (s.covered_through_created_at, s.covered_through_message_id)
)
RETURNING s.conversation_id
"""

WITHDRAW_PARTS: LiteralString = """
DELETE FROM summary_parts p
WHERE p.tenant_id = %(tenant_id)s AND p.conversation_id = ANY(%(conversation_ids)s) AND EXISTS (
    SELECT FROM messages m WHERE m.id = ANY(%(message_ids)s) AND m.conversation_id = p.conversation_id
      AND (m.created_at, m.id) <= (p.through_created_at, p.through_message_id)
)
"""

WITHDRAW_TOPICS: LiteralString = """
DELETE FROM topics t USING messages m
WHERE m.id = ANY(%(message_ids)s) AND t.id = m.topic_id AND t.tenant_id = %(tenant_id)s
RETURNING t.conversation_id
"""

# The times as one value: a plan that is made without statistics, as after an import, would compare each message
# with each visit.
WITHDRAW_VISITS: LiteralString = """
WITH said AS (
    SELECT conversation_id, range_agg(tstzrange(created_at, created_at, '[]')) AS times FROM messages
    WHERE id = ANY(%(message_ids)s) AND tenant_id = %(tenant_id)s GROUP BY conversation_id
)
UPDATE visits v SET
    summary = NULL, key_topics = '[]', summary_generated_at = NULL, summarised_count = 0,
    message_count = (
        SELECT count(*) FROM remembered_messages m
        WHERE m.conversation_id = v.conversation_id AND m.completed
          AND m.created_at >= v.started_at AND m.created_at <= v.last_active_at
    ),
    daily_due_at = CASE WHEN v.ended_at IS NOT NULL THEN now() END
FROM said
WHERE v.tenant_id = %(tenant_id)s AND v.conversation_id = ANY(%(conversation_ids)s)
  AND said.conversation_id = v.conversation_id
  AND said.times && tstzrange(v.started_at, v.last_active_at, '[]')
RETURNING v.id
"""

WITHDRAW_DAYS: LiteralString = """
DELETE FROM daily_summaries
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND visit_ids && %(visit_ids)s::uuid[]
"""

# The next prompt of each conversation begins a new epoch, with memory as it is then.
END_EPOCHS: LiteralString = """
UPDATE context_epochs e SET
    ended_by = 'memory retracted', summary = '', topics = '[]', core_memory = '{}', persona_card = ''
FROM conversations c
WHERE c.id = e.conversation_id AND e.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s
  AND c.id IS DISTINCT FROM %(but)s
  AND (c.id = ANY(%(conversation_ids)s) OR %(everywhere)s AND (e.core_memory <> '{}' OR e.persona_card <> ''))
"""

# --- undoing

OPERATION: LiteralString = """
SELECT o.type, o.field, o.old_value, o.new_value, o.trigger, o.undone_at, o.turn_id,
       o.conversation_id
FROM memory_operations o
WHERE o.id = %(operation_id)s AND o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s FOR UPDATE
"""

PARTS_OF: LiteralString = """
SELECT id, type, field, old_value, new_value, trigger FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND trigger ? 'part_of'
  AND trigger->>'part_of' = %(operation_id)s::text AND undone_at IS NULL
ORDER BY at DESC, id DESC
"""

UNDONE: LiteralString = """
UPDATE memory_operations SET undone_at = now()
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND undone_at IS NULL
  AND (id = %(operation_id)s OR trigger ? 'part_of' AND trigger->>'part_of' = %(operation_id)s::text)
RETURNING undone_at
"""

# Whether it was undone by the proposal or by the log, the proposal says so.
PROPOSAL_UNDONE: LiteralString = """
UPDATE memory_operations SET results = jsonb_set(results, '{state}', '"undone"')
WHERE id = %(proposal_id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type = 'memory_proposal'
  AND results->>'state' = 'accepted'
"""

CHANGED_SINCE: LiteralString = """
SELECT retraction_id FROM messages
WHERE id = ANY(%(message_ids)s) AND tenant_id = %(tenant_id)s AND retraction_id IS DISTINCT FROM %(operation_id)s
LIMIT 1
"""

RESTORE_MESSAGES: LiteralString = """
UPDATE messages m SET retracted_at = NULL, off_record = false, retraction_id = before.retraction_id,
    memory_text = before.memory_text, private_note = before.private_note
FROM jsonb_to_recordset(%(messages)s) AS before (
    id uuid, retraction_id uuid, memory_text text, private_note jsonb
)
WHERE m.id = before.id AND m.tenant_id = %(tenant_id)s AND m.retraction_id = %(operation_id)s
"""

RESTORE_NOTES: LiteralString = """
UPDATE messages m SET private_note = before.private_note
FROM jsonb_to_recordset(%(notes)s) AS before (id uuid, private_note jsonb)
WHERE m.id = before.id AND m.tenant_id = %(tenant_id)s AND m.private_note IS NULL AND m.retracted_at IS NULL
"""

RESTORE_EPISODES: LiteralString = """
UPDATE episodes SET retracted_at = NULL, retraction_id = NULL, indexed_at = NULL
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND retraction_id = %(operation_id)s
RETURNING id
"""

# Unless they were merged again, or the text that held instead is gone.
MERGE_AGAIN: LiteralString = """
UPDATE episodes e SET superseded_by = before.superseded_by, indexed_at = NULL
FROM jsonb_to_recordset(%(unmerged)s) AS before (id uuid, superseded_by uuid, instead uuid)
WHERE e.id = before.id AND e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s
  AND e.superseded_by IS NOT DISTINCT FROM before.instead
  AND EXISTS (SELECT FROM episodes made WHERE made.id = before.superseded_by)
"""

BRING_BACK: LiteralString = """
UPDATE episodes SET superseded_by = NULL, superseded_in = NULL, indexed_at = NULL
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND id = %(episode_id)s
  AND %(by)s::uuid IN (superseded_by, superseded_in)
RETURNING id
"""

LOCK_EPISODE: LiteralString = """
SELECT content FROM episodes
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND id = %(episode_id)s FOR UPDATE
"""

CHANGE_BACK: LiteralString = """
UPDATE episodes SET content = %(old)s, indexed_at = NULL
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND id = %(episode_id)s
"""

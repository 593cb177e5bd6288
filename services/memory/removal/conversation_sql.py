"""The statements of `ConversationRows`."""

from typing import LiteralString

GOES_ON: LiteralString = """
SELECT FROM messages WHERE conversation_id = %(conversation_id)s AND created_at >= %(silent_since)s
UNION ALL SELECT FROM turns WHERE conversation_id = %(conversation_id)s AND finished_at IS NULL
LIMIT 1
"""

LOCK: LiteralString = """
SELECT id FROM conversations WHERE id = %(conversation_id)s AND tenant_id = %(tenant_id)s FOR UPDATE
"""

SAID: LiteralString = "SELECT id FROM messages WHERE conversation_id = %(conversation_id)s"

# Episodes that come from the conversation, each with whether it also comes from elsewhere.
EPISODES: LiteralString = """
SELECT e.id, e.content IS NOT NULL AND EXISTS (
    SELECT FROM messages m WHERE m.id = ANY(e.source_message_ids) AND m.conversation_id <> %(conversation_id)s
) AS is_mixed, e.content IS NOT NULL AS is_written
FROM episodes e
WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND (
    e.conversation_id = %(conversation_id)s OR e.source_message_ids && %(message_ids)s::uuid[]
)
ORDER BY e.id FOR UPDATE OF e
"""

BRING_BACK: LiteralString = """
UPDATE episodes SET superseded_by = NULL, indexed_at = NULL
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND superseded_by = ANY(%(gone)s)
  AND NOT (id = ANY(%(gone)s))
"""

DETACH: LiteralString = """
UPDATE episodes e SET
    conversation_id = CASE WHEN e.conversation_id <> %(conversation_id)s THEN e.conversation_id END,
    source_message_ids = ARRAY(
        SELECT s.id FROM unnest(e.source_message_ids) WITH ORDINALITY AS s (id, place)
        WHERE s.id <> ALL(%(message_ids)s) ORDER BY s.place),
    made_by = e.made_by || '{"kept_from_removed": true}', indexed_at = NULL
WHERE e.id = ANY(%(ids)s) AND e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.content IS NOT NULL
"""

# Core memory that is kept names no message that goes.
DETACH_CORE_MEMORY: LiteralString = """
UPDATE core_memory_history SET trigger_message_id = NULL, made_by = made_by || '{"kept_from_removed": true}'
WHERE trigger_message_id = ANY(%(message_ids)s) AND tenant_id = %(tenant_id)s
"""

# Why something was remembered is kept with what is kept; what was searched for goes with the conversation.
DETACH_OPERATIONS: LiteralString = """
UPDATE memory_operations SET conversation_id = NULL, turn_id = NULL
WHERE conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s
  AND (type LIKE 'core\\_memory\\_%%' OR type LIKE 'episode\\_%%')
"""

# A day whose summary told of the conversation, with a visit to another one on the same day.
REMOVE_DAYS: LiteralString = """
WITH here AS (
    SELECT array_agg(id) AS ids FROM visits WHERE conversation_id = %(conversation_id)s
), gone AS (
    DELETE FROM daily_summaries d USING here
    WHERE d.tenant_id = %(tenant_id)s AND d.user_id = %(user_id)s AND d.visit_ids && here.ids
    RETURNING d.date, d.visit_ids
)
SELECT gone.date, (
    SELECT v.id FROM visits v
    WHERE v.id = ANY(gone.visit_ids) AND v.conversation_id <> %(conversation_id)s
    ORDER BY v.started_at LIMIT 1
) AS visit_id FROM gone
"""

# Sections of core memory that the conversation changed, with their whole history.
CHANGED_SECTIONS: LiteralString = """
SELECT b.id AS block_id, b.expert_id, b.space_id, b.section, b.version, h.version AS number, h.old, h.new, h.at,
       h.trigger_message_id = ANY(%(message_ids)s) AS is_dropped
FROM core_memory_blocks b JOIN core_memory_history h ON h.block_id = b.id
WHERE b.tenant_id = %(tenant_id)s AND b.user_id = %(user_id)s AND EXISTS (
    SELECT FROM core_memory_history c WHERE c.block_id = b.id AND c.trigger_message_id = ANY(%(message_ids)s)
)
ORDER BY b.expert_id, b.section, b.id, h.version
"""

REMOVE_VERSIONS: LiteralString = """
DELETE FROM core_memory_history
WHERE block_id = %(block_id)s AND version = ANY(%(numbers)s) AND tenant_id = %(tenant_id)s
"""

# As written by the user, so that running conversations begin a new epoch.
REWRITE_SECTION: LiteralString = """
WITH block AS (
    UPDATE core_memory_blocks SET content = %(content)s, version = %(version)s, rewritten_version = %(version)s,
        updated_at = clock_timestamp()
    WHERE id = %(block_id)s AND tenant_id = %(tenant_id)s
)
INSERT INTO core_memory_history (block_id, version, tenant_id, old, new, actor)
VALUES (%(block_id)s, %(version)s, %(tenant_id)s, %(content)s, %(content)s, 'user')
"""

REMOVE_SECTION: LiteralString = """
DELETE FROM core_memory_blocks WHERE id = %(block_id)s AND tenant_id = %(tenant_id)s
"""

REMOVE: LiteralString = """
DELETE FROM conversations WHERE id = %(conversation_id)s AND tenant_id = %(tenant_id)s
"""

"""The statements of `CommandReview`."""

from typing import LiteralString

# As the user wrote it, also where the turn itself left it out of memory.
REVIEWED: LiteralString = """
SELECT t.id AS turn_id, t.tenant_id, c.user_id, c.expert_id, c.space_id, c.id AS conversation_id, u.timezone,
       said.id AS message_id, said.content AS said, answer.id AS answer_message_id, answer.content AS answer,
       answer.origin, said.created_at AS at, e.id AS episode_id, e.held_at IS NOT NULL AS is_held
FROM turns t
JOIN conversations c ON c.id = t.conversation_id
JOIN users u ON u.id = c.user_id
JOIN messages said ON said.id = t.user_message_id
JOIN messages answer ON answer.id = t.assistant_message_id
LEFT JOIN episodes e ON e.conversation_id = c.id AND e.episode_type = 'turn'
    AND said.id = ANY(e.source_message_ids)
WHERE t.id = %(turn_id)s AND t.tenant_id = %(tenant_id)s AND t.status = 'completed' AND said.branch_id IS NULL
LIMIT 1
"""
# What the turn itself changed, and whether memory was changed by a tool in it or by anything later.
DONE: LiteralString = """
SELECT o.id, o.old_value, o.field FROM memory_operations o
WHERE o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s AND o.turn_id = %(turn_id)s
  AND o.type = %(command)s AND o.undone_at IS NULL ORDER BY o.at, o.id
"""
CHANGED_OTHERWISE: LiteralString = """
SELECT 1 FROM memory_operations o
WHERE o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s AND (
    o.turn_id = %(turn_id)s AND (o.trigger->>'actor' = 'model' OR o.undone_at IS NOT NULL)
    OR o.type = %(command)s AND o.turn_id IS DISTINCT FROM %(turn_id)s AND o.at > %(at)s
) LIMIT 1
"""
BEFORE_CHANGE: LiteralString = """
SELECT 'message' AS kind, m.id, m.conversation_id, m.turn_id, m.role, m.content, m.created_at
FROM messages m
WHERE m.id = ANY(%(ids)s) AND m.tenant_id = %(tenant_id)s AND m.role = 'user' AND m.id <> %(message_id)s
"""
RELEASE: LiteralString = """
UPDATE episodes SET held_at = NULL, indexed_at = NULL
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND id = %(episode_id)s AND held_at IS NOT NULL
RETURNING id
"""
REPORT: LiteralString = """
UPDATE turns SET memory_changes = %(changes)s WHERE id = %(turn_id)s AND tenant_id = %(tenant_id)s
"""

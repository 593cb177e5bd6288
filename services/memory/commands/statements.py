"""The statements of `Resolution`."""

from typing import LiteralString

# What speaks of any of these words, as memory keeps it, the newest first.
MENTIONS: LiteralString = """
SELECT * FROM (
    SELECT 'message' AS kind, m.id, m.conversation_id, m.turn_id, m.role, m.content, m.created_at
    FROM conversations c JOIN remembered_messages m ON m.conversation_id = c.id
    WHERE c.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s AND c.expert_id = %(expert_id)s
      AND (c.space_id IS NOT DISTINCT FROM %(space_id)s::uuid OR %(reaches_shared)s AND c.space_id IS NULL)
      AND m.completed AND m.id <> %(message_id)s AND m.content ILIKE ANY(%(patterns)s)
    UNION ALL
    SELECT 'episode', e.id, e.conversation_id, NULL, 'user', e.content, e.created_at
    FROM episodes e
    WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.expert_id = %(expert_id)s
      AND (e.space_id IS NOT DISTINCT FROM %(space_id)s::uuid OR %(reaches_shared)s AND e.space_id IS NULL)
      AND e.content IS NOT NULL AND e.retracted_at IS NULL AND e.content ILIKE ANY(%(patterns)s)
) AS found
ORDER BY created_at DESC, id DESC LIMIT %(most)s
"""

# The exchanges before the message in its conversation, the newest message first.
BEFORE: LiteralString = """
SELECT 'message' AS kind, m.id, m.conversation_id, m.turn_id, m.role, m.content, m.created_at
FROM remembered_messages m, (SELECT created_at, id FROM messages WHERE id = %(message_id)s) AS asked
WHERE m.conversation_id = %(conversation_id)s AND m.tenant_id = %(tenant_id)s AND m.completed
  AND (m.created_at, m.id) < (asked.created_at, asked.id)
ORDER BY m.created_at DESC, m.id DESC LIMIT %(recent)s
"""

# What core memory was given because of these messages.
FILED: LiteralString = """
SELECT o.field AS section, o.old_value, o.new_value FROM memory_operations o
WHERE o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s AND o.type LIKE 'core\\_memory\\_%%'
  AND o.undone_at IS NULL AND o.trigger->>'message_id' = ANY(%(message_ids)s::text[])
ORDER BY o.at DESC, o.id DESC LIMIT 50
"""

# The answers to some messages.
ANSWERS: LiteralString = """
SELECT answer.id, answer.content, asked.id FROM messages asked
JOIN remembered_messages answer
    ON answer.conversation_id = asked.conversation_id AND answer.turn_id = asked.turn_id
WHERE asked.id = ANY(%(message_ids)s) AND asked.tenant_id = %(tenant_id)s AND asked.role = 'user'
  AND answer.role = 'assistant' AND answer.completed
"""

# Of a turn its messages; of a written memory none: it stands for itself.
ONE_EPISODE: LiteralString = """
SELECT coalesce(e.content, (
           SELECT string_agg(m.content, ' / ' ORDER BY m.created_at, m.id) FROM remembered_messages m
           WHERE m.id = ANY(e.source_message_ids)
       ), ''), CASE WHEN e.content IS NULL THEN e.source_message_ids ELSE '{}' END
FROM episodes e
WHERE e.id = %(id)s AND e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.expert_id = %(expert_id)s
  AND (e.space_id IS NOT DISTINCT FROM %(space_id)s::uuid OR %(reaches_shared)s AND e.space_id IS NULL)
  AND e.retracted_at IS NULL
"""

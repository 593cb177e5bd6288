"""The statements of `MemoryFinder`."""

from typing import LiteralString

# What was said or written and matches any pattern, newest first. What matches most patterns comes first, so that a
# limit cuts off what shares only one common word.
MENTIONS: LiteralString = """
SELECT * FROM (
    SELECT 'said' AS kind, m.id::text, m.content AS text, m.created_at AS at, m.role, m.id AS message_id
    FROM conversations c JOIN remembered_messages m ON m.conversation_id = c.id
    WHERE c.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s AND c.expert_id = %(expert_id)s
      AND (c.space_id IS NOT DISTINCT FROM %(space_id)s::uuid OR %(reaches_shared)s AND c.space_id IS NULL)
      AND m.completed AND m.role = ANY(%(roles)s) AND m.id <> %(message_id)s AND m.content ILIKE ANY(%(patterns)s)
    UNION ALL
    SELECT 'written', e.id::text, e.content, e.created_at, 'user', NULL
    FROM episodes e
    WHERE 'user' = ANY(%(roles)s)
      AND e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.expert_id = %(expert_id)s
      AND (e.space_id IS NOT DISTINCT FROM %(space_id)s::uuid OR %(reaches_shared)s AND e.space_id IS NULL)
      AND e.content IS NOT NULL AND e.retracted_at IS NULL AND e.superseded_by IS NULL
      AND e.content ILIKE ANY(%(patterns)s)
) AS found
ORDER BY (SELECT count(*) FROM unnest(%(patterns)s::text[]) AS pattern WHERE found.text ILIKE pattern) DESC,
    at DESC, id DESC
LIMIT %(most)s
"""

WRITTEN: LiteralString = """
SELECT 'written' AS kind, e.id::text, e.content AS text, e.created_at AS at, e.pinned_at IS NOT NULL AS pinned,
       e.source_message_ids[1] AS message_id
FROM episodes e
WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.expert_id = %(expert_id)s
  AND (e.space_id IS NOT DISTINCT FROM %(space_id)s::uuid OR e.space_id IS NULL)
  AND e.content IS NOT NULL AND e.retracted_at IS NULL AND e.superseded_by IS NULL
ORDER BY e.created_at DESC, e.id DESC LIMIT %(most)s
"""

# The user's last message before this one in its conversation.
PREVIOUS: LiteralString = """
SELECT 'said' AS kind, m.id::text, m.content AS text, m.created_at AS at, m.role, m.id AS message_id
FROM remembered_messages m, (SELECT created_at, id FROM messages WHERE id = %(message_id)s) AS asked
WHERE m.conversation_id = %(conversation_id)s AND m.tenant_id = %(tenant_id)s AND m.completed AND m.role = 'user'
  AND (m.created_at, m.id) < (asked.created_at, asked.id)
ORDER BY m.created_at DESC, m.id DESC LIMIT 1
"""

# The answers to some messages.
ANSWERS: LiteralString = """
SELECT answer.id, answer.content, asked.id FROM messages asked
JOIN remembered_messages answer
    ON answer.conversation_id = asked.conversation_id AND answer.turn_id = asked.turn_id
WHERE asked.id = ANY(%(message_ids)s) AND asked.tenant_id = %(tenant_id)s AND asked.role = 'user'
  AND answer.role = 'assistant' AND answer.completed
"""

# Messages of the owner as memory keeps them.
MESSAGES: LiteralString = """
SELECT 'said' AS kind, m.id::text, m.content AS text, m.created_at AS at, m.role, m.id AS message_id
FROM conversations c JOIN remembered_messages m ON m.conversation_id = c.id
WHERE c.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s AND m.completed AND m.id = ANY(%(message_ids)s)
ORDER BY m.created_at, m.id
"""

# An episode with the messages that it was made from.
EPISODE: LiteralString = """
SELECT CASE WHEN e.content IS NULL THEN 'said' ELSE 'written' END AS kind,
       CASE WHEN e.content IS NULL THEN e.source_message_ids[1] ELSE e.id END::text AS id,
       coalesce(e.content, (
           SELECT string_agg(m.content, ' / ' ORDER BY m.created_at, m.id) FROM remembered_messages m
           WHERE m.id = ANY(e.source_message_ids) AND m.tenant_id = e.tenant_id AND m.completed
       )) AS text, e.created_at AS at, e.pinned_at IS NOT NULL AS pinned, e.source_message_ids[1] AS message_id
FROM episodes e
WHERE e.id = %(id)s AND e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.expert_id = %(expert_id)s
  AND (e.space_id IS NOT DISTINCT FROM %(space_id)s::uuid OR %(reaches_shared)s AND e.space_id IS NULL)
  AND e.retracted_at IS NULL
"""

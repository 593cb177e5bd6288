"""The statements of `Proposals`."""

from typing import LiteralString

# Of two memories, one that waits is shown only while both are remembered and the one that would go is not pinned.
# Of a value of core memory only its section is known here.
LIST: LiteralString = """
SELECT o.id, o.field AS kind, coalesce(kept.content, o.new_value->>'text', '') AS text,
       coalesce(dropped.content, o.new_value->>'replaces') AS replaces, o.results->>'state' AS state,
       x.name AS expert, o.conversation_id, o.turn_id, o.at, (o.trigger->>'message_id')::uuid AS message_id,
       (o.results->>'kept')::uuid AS kept_id, kept.created_at AS kept_at, kept.source_message_ids AS kept_from,
       (o.results->>'dropped')::uuid AS dropped_id, dropped.created_at AS dropped_at,
       dropped.source_message_ids AS dropped_from, o.results->>'kept_value' AS kept_value,
       o.results->>'dropped_value' AS dropped_value
FROM memory_operations o LEFT JOIN experts x ON x.id::text = o.trigger->>'expert_id' AND x.tenant_id = o.tenant_id
LEFT JOIN episodes kept ON kept.id = (o.results->>'kept')::uuid AND kept.tenant_id = o.tenant_id
    AND kept.retracted_at IS NULL
LEFT JOIN episodes dropped ON dropped.id = (o.results->>'dropped')::uuid AND dropped.tenant_id = o.tenant_id
    AND dropped.retracted_at IS NULL
WHERE o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s AND o.type = 'memory_proposal'
  AND o.new_value IS NOT NULL AND o.results->>'state' = %(state)s
  AND (NOT o.results ? 'kept'
       OR (o.results ? 'kept_value'
           OR kept.id IS NOT NULL AND (%(state)s <> 'waiting' OR EXISTS (
               SELECT FROM remembered_episodes r WHERE r.id = kept.id)))
      AND (o.results ? 'dropped_value' OR dropped.id IS NOT NULL AND (
           %(state)s <> 'waiting' OR dropped.pinned_at IS NULL AND EXISTS (
               SELECT FROM remembered_episodes r WHERE r.id = dropped.id))))
  AND (%(after_at)s::timestamptz IS NULL OR (o.at, o.id) < (%(after_at)s, %(after_id)s::uuid))
ORDER BY o.at DESC, o.id DESC LIMIT %(limit)s
"""

OPEN: LiteralString = """
SELECT o.id, o.field AS kind, o.results->>'state' AS state, coalesce(o.new_value->>'text', '') AS text,
       coalesce(o.new_value->>'replaces', '') AS replaces, coalesce(o.new_value->>'memory', '') AS memory,
       (o.trigger->>'expert_id')::uuid AS expert_id, o.space_id, (o.results->>'asked')::uuid AS asked_in,
       (o.results->>'kept')::uuid AS kept, (o.results->>'dropped')::uuid AS dropped,
       o.results->>'kept_value' AS kept_value, o.results->>'dropped_value' AS dropped_value
FROM memory_operations o
WHERE o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s AND o.type = 'memory_proposal'
  AND o.new_value IS NOT NULL
"""
PROPOSED: LiteralString = f"{OPEN} AND o.id = %(id)s"
_WAITING: LiteralString = f"{OPEN} AND o.results->>'state' = 'waiting' AND NOT o.results ? 'kept'"
WAITING: LiteralString = f"{_WAITING} ORDER BY o.at, o.id"
# The one that the turn before has asked comes first.
QUESTION: LiteralString = f"""
WITH before AS (
    SELECT t.id FROM turns t
    WHERE t.conversation_id = %(conversation_id)s AND t.tenant_id = %(tenant_id)s
      AND t.user_message_id <> %(message_id)s
    ORDER BY t.started_at DESC, t.id DESC LIMIT 1
)
{_WAITING}
  AND o.trigger->>'expert_id' = %(expert_id)s::text AND o.space_id IS NOT DISTINCT FROM %(space_id)s
  AND (NOT o.results ? 'asked' OR (o.results->>'asked')::uuid = (SELECT id FROM before))
ORDER BY NOT o.results ? 'asked', o.at, o.id
"""  # noqa: S608 — a constant

SETTLE: LiteralString = """
UPDATE memory_operations SET results = jsonb_set(results, '{state}', to_jsonb(%(state)s::text))
WHERE id = ANY(%(ids)s) AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type = 'memory_proposal'
  AND results->>'state' = 'waiting' AND new_value IS NOT NULL
RETURNING id
"""

MADE: LiteralString = """
SELECT results->>'state', results->>'operation' FROM memory_operations
WHERE id = %(id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type = 'memory_proposal'
"""

# Digests are compared by the caller: they may be encrypted.
PAIRS: LiteralString = """
SELECT results->>'kept', results->>'kept_value', results->>'dropped', results->>'dropped_value'
FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type = 'memory_proposal' AND results ? 'kept'
"""

"""The statements of `Purge`."""

from typing import LiteralString

PLACES: LiteralString = """
SELECT DISTINCT m.conversation_id, m.turn_id FROM messages m
WHERE m.id = ANY(%(message_ids)s) AND m.tenant_id = %(tenant_id)s
"""

PROMPTS: LiteralString = """
SELECT count(*) FROM turns t JOIN conversations c ON c.id = t.conversation_id
WHERE c.user_id = %(user_id)s AND t.tenant_id = %(tenant_id)s AND t.prompt IS NOT NULL
"""

# Of memories that stay, what they said before; of days, whatever they told of these conversations.
VERSIONS: LiteralString = """
DELETE FROM memory_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.user_id = %(user_id)s AND (
    v.message_id = ANY(%(message_ids)s)
    OR v.was->'source_message_ids' ?| %(whole_ids)s::uuid[]::text[]
    OR v.was->'visit_ids' ?| ARRAY(SELECT id::text FROM visits WHERE conversation_id = ANY(%(conversation_ids)s))
)
"""

VERSION_TEXTS: LiteralString = """
SELECT v.id, coalesce(v.was->>'content', v.was->>'memory_text', v.was->>'summary') FROM memory_versions v
WHERE v.tenant_id = %(tenant_id)s AND v.user_id = %(user_id)s
  AND coalesce(v.was->>'content', v.was->>'memory_text', v.was->>'summary') IS NOT NULL
"""

REMOVE_VERSIONS: LiteralString = """
DELETE FROM memory_versions WHERE tenant_id = %(tenant_id)s AND id = ANY(%(version_ids)s)
"""

_WITHDRAWN: LiteralString = """
e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.retracted_at IS NOT NULL
AND (e.retraction_id = ANY(%(operation_ids)s) OR e.source_message_ids && %(whole_ids)s::uuid[])
"""

# Memories that the purged ones had replaced stay out of memory.
KEEP_OUT: LiteralString = f"""
UPDATE episodes SET retracted_at = coalesce(retracted_at, clock_timestamp())
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
  AND superseded_by IN (SELECT e.id FROM episodes e WHERE {_WITHDRAWN})
"""  # noqa: S608 — our own text only

# What was just withdrawn, and what earlier commands withdrew of the same messages.
EPISODES: LiteralString = f"""
DELETE FROM episodes e WHERE {_WITHDRAWN}
RETURNING e.id, e.content
"""  # noqa: S608 — our own text only

# The operations that withdrew it hold what would undo them.
OPERATIONS: LiteralString = """
DELETE FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
  AND (id = ANY(%(operation_ids)s) OR trigger->>'part_of' = ANY(%(operation_ids)s::text[]))
"""

SCRUB_EPISODE_OPERATIONS: LiteralString = """
UPDATE memory_operations SET old_value = NULL, new_value = NULL
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type LIKE 'episode\\_%%'
  AND (field = ANY(%(episode_ids)s::text[]) OR new_value->>'id' = ANY(%(episode_ids)s::text[]))
"""

# Of a command, what undoes it stays; what it named, and what that was found to mean, goes.
_SCRUBBED: LiteralString = """
query = NULL,
    results = CASE WHEN type = 'memory_command' AND jsonb_typeof(results) = 'object' THEN results - 'items' END
"""

SCRUB_TURN_OPERATIONS: LiteralString = f"""
UPDATE memory_operations SET {_SCRUBBED},
    old_value = CASE WHEN type = 'memory_command' OR type LIKE 'core\\_memory\\_%%' THEN old_value END,
    new_value = CASE WHEN type = 'memory_command' OR type LIKE 'core\\_memory\\_%%' THEN new_value END
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
  AND (turn_id = ANY(%(turn_ids)s) OR trigger->>'message_id' = ANY(%(message_ids)s::text[]))
"""  # noqa: S608 — our own text only

# A change of memory that was asked for elsewhere keeps what is needed to undo it, for other messages alone.
SCRUB_COMMANDS_ABOUT: LiteralString = """
WITH said AS (SELECT unnest(%(message_ids)s::uuid[])::text AS id)
UPDATE memory_operations o SET query = NULL, results = o.results - 'items', old_value = o.old_value || (
    SELECT jsonb_object_agg(kept.key, (
        SELECT coalesce(jsonb_agg(each), '[]') FROM jsonb_array_elements(o.old_value->kept.key) AS each
        WHERE each->>'id' NOT IN (SELECT id FROM said)
    )) FROM unnest(ARRAY['messages', 'notes']) AS kept (key) WHERE o.old_value ? kept.key
)
WHERE o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s AND o.type = 'memory_command'
  AND EXISTS (
      SELECT FROM jsonb_array_elements(o.old_value->'messages') AS each WHERE each->>'id' IN (SELECT id FROM said)
  )
"""

# What commands and searches of a user repeat of their words, and what turns report of changes and queries.
OPERATION_NOTES: LiteralString = """
SELECT id, query, results FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND (query IS NOT NULL OR results IS NOT NULL)
"""

SCRUB_OPERATION_NOTES: LiteralString = f"""
UPDATE memory_operations SET {_SCRUBBED} WHERE id = ANY(%(ids)s) AND tenant_id = %(tenant_id)s
"""  # noqa: S608 — our own text only

TURN_NOTES: LiteralString = """
SELECT t.id, t.memory_changes, t.context_report #> '{recall,queries}', t.context_report->'dropped',
       t.context_report->'rounds'
FROM turns t JOIN conversations c ON c.id = t.conversation_id
WHERE c.user_id = %(user_id)s AND t.tenant_id = %(tenant_id)s
"""

SCRUB_TURN_NOTES: LiteralString = """
UPDATE turns SET memory_changes = '[]',
    context_report = (context_report #- '{recall,queries}') - ARRAY['dropped', 'rounds']
WHERE id = ANY(%(ids)s) AND tenant_id = %(tenant_id)s
"""

BLOCKS: LiteralString = """
SELECT b.id, b.section, b.expert_id, b.space_id, b.content FROM core_memory_blocks b
WHERE b.tenant_id = %(tenant_id)s AND b.user_id = %(user_id)s
"""

HISTORY: LiteralString = """
SELECT version, old, new FROM core_memory_history WHERE block_id = %(block_id)s AND tenant_id = %(tenant_id)s
"""

REWRITE_VERSION: LiteralString = """
UPDATE core_memory_history SET old = %(old)s, new = %(new)s
WHERE block_id = %(block_id)s AND version = %(version)s AND tenant_id = %(tenant_id)s
"""

SECTION_OPERATIONS: LiteralString = """
SELECT id, old_value, new_value FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type LIKE 'core\\_memory\\_%%'
  AND field = %(section)s AND trigger->>'expert_id' = %(expert_id)s::text
  AND space_id IS NOT DISTINCT FROM %(space_id)s
  AND (old_value IS NOT NULL OR new_value IS NOT NULL)
"""

REWRITE_OPERATION: LiteralString = """
UPDATE memory_operations SET old_value = %(old)s, new_value = %(new)s
WHERE id = %(id)s AND tenant_id = %(tenant_id)s
"""

# A query repeats words of the message and of those before it.
TURNS: LiteralString = """
UPDATE turns t SET
    context_report = (t.context_report #- '{recall,queries}') - ARRAY['dropped', 'rounds'],
    request = CASE WHEN t.id = ANY(%(turn_ids)s) THEN t.request - 'echo' ELSE t.request END,
    memory_changes = CASE WHEN t.id = ANY(%(turn_ids)s) THEN '[]' ELSE t.memory_changes END
FROM conversations c
WHERE c.id = t.conversation_id AND c.user_id = %(user_id)s AND t.tenant_id = %(tenant_id)s
  AND (t.id = ANY(%(turn_ids)s) OR t.context_report #> '{recall,queries}' IS NOT NULL)
  AND t.finished_at >= (SELECT min(created_at) FROM messages WHERE id = ANY(%(message_ids)s))
"""

# The row stays: an import or a client that sends the message again finds it by its key or digest, and it is not
# stored a second time. What an earlier command keeps out of memory stays out.
MESSAGES: LiteralString = """
UPDATE messages m SET content = coalesce(kept.text, ''), metadata = '{}', private_note = NULL,
    parts = CASE WHEN kept.text IS NULL THEN '[]' ELSE m.parts END,
    memory_text = CASE WHEN kept.text IS NOT NULL AND m.memory_text <> kept.text THEN m.memory_text END,
    retracted_at = CASE WHEN kept.text IS NULL THEN coalesce(m.retracted_at, clock_timestamp())
                        ELSE m.retracted_at END
FROM unnest(%(message_ids)s::uuid[], %(texts)s::text[]) AS kept (id, text)
WHERE m.id = kept.id AND m.tenant_id = %(tenant_id)s
"""

# A digest is copied as it is stored: all are sealed with the same key.
KEEP_MESSAGES_AWAY: LiteralString = """
INSERT INTO forgotten_words (tenant_id, user_id, digest, deleted)
SELECT DISTINCT m.tenant_id, %(user_id)s::uuid, m.digest, %(deleted)s::boolean FROM messages m
WHERE m.id = ANY(%(message_ids)s) AND m.tenant_id = %(tenant_id)s AND m.digest IS NOT NULL
ON CONFLICT (user_id, digest, tenant_id) DO UPDATE SET deleted = forgotten_words.deleted OR EXCLUDED.deleted
"""

KEEP_AWAY: LiteralString = """
INSERT INTO forgotten_words (tenant_id, user_id, digest, deleted)
SELECT %(tenant_id)s, %(user_id)s, digest, true FROM unnest(%(digests)s::bytea[]) AS g (digest)
ON CONFLICT (user_id, digest, tenant_id) DO UPDATE SET deleted = true
"""

FEEDBACK: LiteralString = """
DELETE FROM feedback WHERE message_id = ANY(%(whole_ids)s) AND tenant_id = %(tenant_id)s
"""

# The title is the beginning of the first message, unless the user named the conversation.
_FIRST_GOES: LiteralString = """
c.id = ANY(%(conversation_ids)s) AND c.tenant_id = %(tenant_id)s AND NOT c.renamed AND (
    SELECT m.id FROM messages m WHERE m.conversation_id = c.id ORDER BY m.created_at, m.id LIMIT 1
) = ANY(%(message_ids)s)
"""
GONE_TITLES: LiteralString = f"SELECT c.title FROM conversations c WHERE c.title <> '' AND {_FIRST_GOES}"  # noqa: S608
TITLES: LiteralString = f"UPDATE conversations c SET title = '' WHERE {_FIRST_GOES}"  # noqa: S608 — our own text only

# For each promise the message that asked for it, and its text.
PROMISES: LiteralString = """
SELECT id, source_message_id, quote, text FROM promises
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
"""
REMOVE_PROMISES: LiteralString = """
WITH gone AS (
    DELETE FROM promises WHERE id = ANY(%(promise_ids)s) AND tenant_id = %(tenant_id)s RETURNING id
)
DELETE FROM memory_operations o USING gone
WHERE o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s AND o.type = 'promise'
  AND o.new_value->>'id' = gone.id::text
"""

TEXTS: LiteralString = """
SELECT id, content FROM messages WHERE id = ANY(%(message_ids)s) AND tenant_id = %(tenant_id)s ORDER BY id
"""

ITEMS: LiteralString = """
SELECT kind, id, text, state FROM derived_items
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND kind = %(kind)s AND id = ANY(%(ids)s)
"""

"""The statements of `CoreMemory`."""

from typing import LiteralString

OWNER = """
SELECT u.id, e.id, s.id, u.timezone FROM users u
LEFT JOIN experts e ON e.tenant_id = u.tenant_id AND e.name = %(expert)s
LEFT JOIN spaces s ON s.tenant_id = u.tenant_id AND s.user_id = u.id AND s.name = %(space)s
WHERE u.tenant_id = %(tenant_id)s AND u.external_id = %(user)s
"""

MAKE_SPACE = """
INSERT INTO spaces (id, tenant_id, user_id, name)
SELECT %(space_id)s, tenant_id, id, %(space)s FROM users WHERE tenant_id = %(tenant_id)s AND external_id = %(user)s
ON CONFLICT (user_id, name, tenant_id) DO NOTHING RETURNING id
"""

# A space's sections follow those that all spaces share, which are read with `visible`.
READ: LiteralString = """
SELECT b.section, b.content, b.version, b.rewritten_version, b.updated_at, b.id FROM core_memory_blocks b
WHERE b.tenant_id = %(tenant_id)s AND b.user_id = %(user_id)s AND b.expert_id = %(expert_id)s
  AND (b.space_id IS NOT DISTINCT FROM %(space_id)s::uuid OR %(visible)s AND b.space_id IS NULL)
ORDER BY b.section, b.space_id NULLS FIRST
"""

# Changes of one core memory wait for each other here, and each then sees what earlier ones have written. The user
# is locked first, as in an erasure, so that the user cannot go meanwhile.
LOCK = """
INSERT INTO core_memory_generations (user_id, expert_id, tenant_id, generation)
SELECT person.id, %(expert_id)s, %(tenant_id)s, 0
FROM (SELECT id FROM users WHERE tenant_id = %(tenant_id)s AND id = %(user_id)s FOR KEY SHARE) AS person
ON CONFLICT (user_id, expert_id, tenant_id) DO UPDATE SET generation = core_memory_generations.generation
RETURNING generation
"""

# A section with one or more new versions.
WRITE = """
WITH block AS (
    INSERT INTO core_memory_blocks (id, tenant_id, user_id, expert_id, space_id, section, content, version,
        rewritten_version)
    VALUES (%(id)s, %(tenant_id)s, %(user_id)s, %(expert_id)s, %(space_id)s, %(section)s, %(content)s,
        %(version)s, CASE WHEN %(whole)s THEN %(version)s ELSE 0 END)
    ON CONFLICT (user_id, expert_id, section, space_id, tenant_id) DO UPDATE SET
        content = EXCLUDED.content, version = EXCLUDED.version, updated_at = clock_timestamp(),
        rewritten_version = greatest(core_memory_blocks.rewritten_version, EXCLUDED.rewritten_version)
    RETURNING id, updated_at
), noted AS (
    INSERT INTO core_memory_history
        (block_id, version, tenant_id, old, new, trigger_message_id, actor, made_by, at)
    SELECT block.id, made.version, %(tenant_id)s, made.old, made.new, made.message_id, made.actor, made.made_by,
           block.updated_at
    FROM block, unnest(%(versions)s::integer[], %(olds)s::jsonb[], %(news)s::jsonb[], %(messages)s::uuid[],
        %(actors)s::text[], %(made_by)s::jsonb[]) AS made (version, old, new, message_id, actor, made_by)
)
SELECT updated_at, id FROM block
"""

VERSION = """
SELECT h.new FROM core_memory_history h JOIN core_memory_blocks b ON b.id = h.block_id
WHERE b.tenant_id = %(tenant_id)s AND b.user_id = %(user_id)s AND b.expert_id = %(expert_id)s
  AND b.section = %(section)s AND b.space_id IS NOT DISTINCT FROM %(space_id)s AND h.version = %(version)s
"""

HISTORY: LiteralString = """
SELECT h.version, h.old, h.new, h.actor, h.trigger_message_id, h.at
FROM core_memory_blocks b LEFT JOIN core_memory_history h ON h.block_id = b.id
    AND (%(before)s::integer IS NULL OR h.version < %(before)s)
WHERE b.tenant_id = %(tenant_id)s AND b.user_id = %(user_id)s AND b.expert_id = %(expert_id)s
  AND b.section = %(section)s AND b.space_id IS NOT DISTINCT FROM %(space_id)s
ORDER BY h.version DESC LIMIT %(limit)s
"""

DELETE: LiteralString = """
DELETE FROM core_memory_blocks
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND expert_id = %(expert_id)s
  AND section = %(section)s AND space_id IS NOT DISTINCT FROM %(space_id)s
"""

# What the log and the beginnings of prompts say of a section since a time. In a space prompts show it with another
# one: it is left out until the next prompt begins a new epoch.
SCRUB_SECTION: LiteralString = """
WITH told AS (
    UPDATE memory_operations SET old_value = NULL, new_value = NULL
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type LIKE 'core\\_memory\\_%%'
      AND field = %(section)s AND trigger->>'expert_id' = %(expert_id)s::text
      AND space_id IS NOT DISTINCT FROM %(space_id)s AND (%(since)s::timestamptz IS NULL OR at >= %(since)s)
)
UPDATE context_epochs e SET persona_card = '', core_memory = CASE
    WHEN %(content)s::jsonb IS NULL OR c.space_id IS NOT NULL THEN e.core_memory - %(section)s
    ELSE jsonb_set(e.core_memory, ARRAY[%(section)s], %(content)s::jsonb) END
FROM conversations c
WHERE c.id = e.conversation_id AND c.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s
  AND c.expert_id = %(expert_id)s AND e.core_memory ? %(section)s
  AND (%(space_id)s::uuid IS NULL OR c.space_id = %(space_id)s)
"""
